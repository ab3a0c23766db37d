"""A TCP proxy between the service and its database that can fail as networks do."""

import select
import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards data until told otherwise.

    refuse: connections are closed, and new ones fail.  hold: connections stay open, and nothing is forwarded.
    lose: data are dropped without either side noticing, also on new connections; those connections stay dead.
    go_on: forward again, on other connections.  cut_at(text): close the connection on which a client sends this text,
    as many times as given.
    """

    def __init__(self, host, port):
        self.target = (host, port)
        self.listening = socket.create_server(('127.0.0.1', 0))
        self.port = self.listening.getsockname()[1]
        self.passing = threading.Event()
        self.passing.set()
        self.refusing, self.losing, self.text, self.cuts = False, False, b'', 0
        self.pairs, self.lost = [], set()
        threading.Thread(target=self._accept, daemon=True).start()

    def refuse(self):
        self.refusing = True
        self.cut()

    def hold(self):
        self.passing.clear()

    def lose(self):
        self.losing = True
        self.lost.update(self.pairs)

    def go_on(self):
        self.refusing = self.losing = False
        self.passing.set()

    def cut(self):
        for each in self.pairs:
            _close(*each)
        self.pairs.clear()

    def cut_at(self, text, times=1):
        self.text, self.cuts = text.encode(), times

    def close(self):
        self.refuse()
        self.passing.set()
        _close(self.listening)

    def _accept(self):
        while True:
            try:
                client = self._admitted(self.listening.accept()[0])
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            pair = client, socket.create_connection(self.target)
            if self.losing:
                self.lost.add(pair)
            self.pairs.append(pair)
            threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _admitted(self, client):
        return client

    def _pass(self, client, server):
        sources = [client, server]
        with suppress(OSError, ValueError):
            while sources:
                for source in select.select(sources, [], [])[0]:
                    self.passing.wait()
                    data = source.recv(65536)
                    if (client, server) in self.lost:
                        if not data:
                            # The other side does not notice the close either.
                            sources.remove(source)
                            source.close()
                        continue
                    if not data or self._is_cut(source is client, data):
                        return _close(client, server)
                    (server if source is client else client).sendall(data)

    def _is_cut(self, said, data):
        if not said or not self.cuts or self.text not in data:
            return False
        self.cuts -= 1
        return True


def _close(*sockets):
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
