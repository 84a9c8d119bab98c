"""The published archives: where they are, what is in them, how they are fetched and read."""
