"""What is remembered of runs: the database, its tables, its rows, and readers of it."""
