"""Windowed aggregates by panes: partial results per key and pane, and windows made of them."""
