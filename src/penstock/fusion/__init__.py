"""Operators to components (seed 001; the Order step of seed 002)."""
