"""Solvers of the Layer-Peeled Model, each with a certificate."""
