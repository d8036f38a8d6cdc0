"""Many topologies on one cluster: submissions that are kept, a host that runs them, a client."""
