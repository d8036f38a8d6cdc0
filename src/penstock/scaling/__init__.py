"""Components to parallelism (seeds 002 and 003)."""
