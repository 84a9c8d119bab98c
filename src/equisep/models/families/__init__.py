"""One network family per file; each declares its sites."""
