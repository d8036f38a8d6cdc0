"""The `penstock` streaming source: streams to lanes, anew each batch, nothing lost."""
