"""Tuples to partitions (Balkesen et al. 2013, s. 4, OSG of Kotto-Kombi 2018, ch. 6)."""
