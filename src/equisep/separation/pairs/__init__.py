"""What stands between two classes: who is taken for whom, how far and at which angle their means are, the spread between them."""
