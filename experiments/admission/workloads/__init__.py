"""What runs in the trials, and the parameters that the paper leaves open."""
