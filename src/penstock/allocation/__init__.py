"""Key groups to nodes (seed 004)."""
