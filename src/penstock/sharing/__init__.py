"""Topologies -> processors: who gets how many of one cluster's, so that most promises are kept."""
