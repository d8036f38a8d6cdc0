"""A port on loopback that nobody listens on."""

import socket


def free_port() -> int:
    """Free when asked; taken at once by the caller."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
