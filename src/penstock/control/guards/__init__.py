"""What stands between a policy's suggestion and the cluster."""
