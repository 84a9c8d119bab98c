"""What the number of samples does to D: the noise of class means and what is left of D without it, and resampling."""
