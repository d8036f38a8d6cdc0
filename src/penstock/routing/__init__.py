"""Tuples to partitions (seed 000 s.4, OSG of seed 002 ch. 6)."""
