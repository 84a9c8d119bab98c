"""What the answers of `equisep.advice` look like in a terminal and as drawings."""
