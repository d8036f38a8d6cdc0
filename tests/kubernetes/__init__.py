"""Spark on a real control plane of Kubernetes, whose pods run as processes of this machine."""
