"""Speeds, each as a ratio to a named baseline measured in the same process."""
