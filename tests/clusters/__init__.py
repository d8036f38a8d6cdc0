"""The trial that every cluster manager has to pass, and the clusters that go through it.

A cluster describes itself as a `Manager`; `trial` has what is done on it and what must come out.
"""
