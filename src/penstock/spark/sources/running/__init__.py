"""The sources of a topology as a run sees them: one protocol, one implementation for each kind."""
