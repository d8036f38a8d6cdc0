"""The experiments of the papers behind the decisions: a folder each, with claims and figures."""
