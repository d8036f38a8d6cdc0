"""Components apart: one query each, joined by channels, with processors of their own."""
