"""The drawings of figures (matplotlib): what panels show, as numbers, and how it is drawn."""
