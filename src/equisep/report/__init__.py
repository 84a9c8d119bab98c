"""Drawing what was measured: in the terminal, in a notebook, on paper. Each module loads only what it draws with."""
