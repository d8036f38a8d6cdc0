"""One module per paper: its experiments, claims and plots."""
