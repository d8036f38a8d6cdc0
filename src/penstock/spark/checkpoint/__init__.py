"""What must survive a restart: layout, identity, recorded plans, carried-over state."""
