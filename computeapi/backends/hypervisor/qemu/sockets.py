"""Unix sockets in the folders of guests, whose paths may exceed the 107 bytes of a socket address."""

import os
import socket
from pathlib import Path


def connected(path: Path, seconds: float) -> socket.socket:
    """A connection to the socket at the path; OSError."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(seconds)
            connection.connect(f'/proc/self/fd/{folder}/{path.name}')
            connection.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        os.close(folder)
