"""One assembly of session, queries and loop: a topology together, apart, or an attached query."""
