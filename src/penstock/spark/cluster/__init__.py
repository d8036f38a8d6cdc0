"""Where a run takes place: an embedded cluster, the user's own, the session, the checks."""
