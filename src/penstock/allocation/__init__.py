"""Key groups to nodes (Madsen et al. 2017)."""
