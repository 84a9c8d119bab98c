"""Drawings, tables and the page of the papers' figures."""
