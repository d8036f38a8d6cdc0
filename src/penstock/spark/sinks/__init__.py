"""Where the rows of a batch go: all sinks of a batch are committed together, exactly once."""
