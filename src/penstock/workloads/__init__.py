"""Seeded generators, rate profiles and the road of the demo."""
