"""A run that is killed in every way there is, again and again, and must lose nothing by it."""
