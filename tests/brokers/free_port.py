"""A port on loopback that nothing is listening on."""

import random
import socket

# Below those the system gives to clients: a client of another test could take one of these before
# the server is up, and one that asks for its server again and again even itself.
FIRST, LAST = 20_000, 32_000


def free_port() -> int:
    """Free when asked; taken at once by the caller."""
    while True:
        port = random.randint(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
