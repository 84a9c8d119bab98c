"""What notebooks show: a profile with its findings and its curve, a training; records show themselves (`equisep.display`)."""
