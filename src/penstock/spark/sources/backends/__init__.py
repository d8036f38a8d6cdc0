"""Where streams come from: one small interface, and what stands behind it."""
