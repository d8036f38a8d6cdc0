"""Seeded generators, rate profiles and example topologies."""
