"""Latency models and the formulas they are made of."""
