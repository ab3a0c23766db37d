"""Listening sockets. If one cannot be opened, the error is one line that names the option for its address."""

import errno
from socket import AF_INET6, SOCK_STREAM, create_server, getaddrinfo, socket


def listening_at(host: str, port: int, option: str = '--port', *, all_versions: bool = False) -> socket:
    """A listening socket; OSError if its address, which *option* sets, is not available.

    all_versions: whether :: accepts IPv4, too."""
    try:
        family = getaddrinfo(host, None, type=SOCK_STREAM)[0][0]
        dual = all_versions and family == AF_INET6 and host == '::'
        return create_server((host, port), family=family, backlog=1024, dualstack_ipv6=dual)
    except UnicodeError:
        raise OSError(f'Port {port} of {host} ({option}): the host name is not valid') from None
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise OSError(f'Port {port} of {host} ({option}): {error.strerror}') from None
        raise OSError(
            f'Port {port} of {host} is in use; {option} names another one, or 0 for any that is free.'
        ) from None
