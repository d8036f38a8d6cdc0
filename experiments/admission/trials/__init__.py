"""The runs that claims are judged by, and what was measured in them."""
