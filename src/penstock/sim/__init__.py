"""A simulated cluster behind the loop's ports."""
