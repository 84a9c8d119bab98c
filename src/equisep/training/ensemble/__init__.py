"""Many networks of one shape trained side by side as stacked parameters."""
