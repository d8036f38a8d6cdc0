"""Faults at every single step."""
