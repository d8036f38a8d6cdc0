"""From a topology to streaming queries: read operators, fuse, order, insert exchanges."""
