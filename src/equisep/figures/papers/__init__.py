"""The papers as data: one file per paper."""
