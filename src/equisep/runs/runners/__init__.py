"""One file per kind of run."""
