"""The papers as data: figures with their cells, claims and printed numbers, and the rules that judge them; no torch."""
