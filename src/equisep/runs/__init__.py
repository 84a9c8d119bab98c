"""Figures made real: plan, execute (here or on Ray), store, provenance."""
