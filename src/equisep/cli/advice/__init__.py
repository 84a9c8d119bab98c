"""The commands that answer a question about a model or a data set: one file per command."""
