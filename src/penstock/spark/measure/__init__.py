"""From Spark to an Observation: one core, and a reader each for together, apart and attached."""
