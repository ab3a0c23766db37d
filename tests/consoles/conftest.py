"""The console proxy in this process, and servers that run on its simulated host."""

from contextlib import ExitStack
from urllib.parse import parse_qs, urlsplit

import pytest

from computeapi.consoles.background import accepting_clients
from computeapi.consoles.listeners import LISTENERS, open_listeners


def token_of(url):
    """The token in a URL that the API returned."""
    query = parse_qs(urlsplit(url).query)
    return (query.get('token') or parse_qs(query['path'][0][1:])['token'])[0]


@pytest.fixture
def conf(conf):
    conf.set_override('enabled', True, 'spice')
    for listener in LISTENERS:
        conf.set_override(listener.host, '127.0.0.1', listener.group)
        conf.set_override(listener.port, 0, listener.group)
    return conf


@pytest.fixture
def proxy(conf, service):
    """The listening addresses by console type. Overrides of conf must be set before this fixture is used."""
    with ExitStack() as stack:
        listeners = open_listeners(conf, stack)
        stack.enter_context(accepting_clients(listeners, lambda: service.cloud.consoles, conf))
        yield {listener.kind: f'127.0.0.1:{listener.socket.getsockname()[1]}' for listener in listeners}


@pytest.fixture
def server(service, servers):
    """A running server."""
    found = servers.get(servers.add(name='web'))
    service.hypervisor.spawn(found, [])
    return found


@pytest.fixture
def url(proxy, service, server):
    """url('serial'): the URL of the server's console, with a new token."""

    def url(kind):
        protocol = {'novnc': 'vnc', 'serial': 'serial', 'spice-html5': 'spice'}[kind]
        return f'ws://{proxy[kind]}/?token={token_of(service.cloud.consoles.open(server, protocol, kind))}'

    return url
