"""Rates of the near future."""
