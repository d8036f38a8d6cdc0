"""The scaling policies, one in each file, and the registry of their names."""
