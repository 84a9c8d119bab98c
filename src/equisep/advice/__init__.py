"""Which depth, which layer, which model, a shorter network, weights for rare classes: answers that need data."""
