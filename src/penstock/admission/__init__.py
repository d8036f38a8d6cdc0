"""Streams to lanes (Balkesen et al. 2013)."""
