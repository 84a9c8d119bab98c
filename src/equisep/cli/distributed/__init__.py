"""Measuring by many processes: under torchrun, and the parts that shards leave in files."""
