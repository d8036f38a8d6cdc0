"""Streams to lanes (seed 000)."""
