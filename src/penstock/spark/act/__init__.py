"""From a plan to Spark: executors, key groups, parallelism, routes."""
