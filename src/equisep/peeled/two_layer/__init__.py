"""The 2-Layer-Peeled Model (Fang, He, Long & Su 2021): the last two layers as they are, and free features below them."""
