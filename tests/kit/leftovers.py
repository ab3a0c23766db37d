"""Whether a cloud that has ended leaves files, threads or sockets: run in a process of its own, because other tests
have clouds whose files and threads come and go."""

import os
import socket
import threading

from computeapi.testing import Cloud
from tests.kit.conftest import HTTP


def open_files():
    """The open files of this process, except the directory used to list them."""
    paths = []
    for number in os.listdir('/proc/self/fd'):
        try:
            paths.append(os.readlink(f'/proc/self/fd/{number}'))
        except FileNotFoundError:
            pass
    return {path for path in paths if not path.endswith('/fd')}


def main():
    with Cloud():
        # Files opened by imports at the first start stay open.
        pass
    files, threads = open_files(), set(threading.enumerate())
    with Cloud() as cloud:
        http = HTTP(cloud)
        http.boot()
        folder, port = cloud.clouds_yaml.parent, int(cloud.url.rpartition(':')[2])
        cloud.snapshot('busy')
        http.session.close()
    assert not open_files() - files, open_files() - files
    assert not set(threading.enumerate()) - threads, threading.enumerate()
    assert not folder.exists()
    with socket.socket() as probe:
        assert probe.connect_ex(('127.0.0.1', port))


if __name__ == '__main__':
    main()
