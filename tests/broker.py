"""The RabbitMQ of tests: each test process has its own virtual host, which is deleted at the end.

COMPUTEAPI_TEST_RABBITMQ has its URL, e.g. rabbit://guest:guest@127.0.0.1:5672; without it, tests that need a broker are
not run.
"""

import functools
import logging
import os
import subprocess
from urllib.parse import urlsplit

from tests.databases import own_name

URL = os.environ.get('COMPUTEAPI_TEST_RABBITMQ', '')
LEAVING = []
VHOST = own_name()


@functools.cache
def transport_url():
    """The URL of this process's own virtual host."""
    user = urlsplit(URL).username
    control('add_vhost', VHOST)
    control('set_permissions', '-p', VHOST, user, '.*', '.*', '.*')
    return f'{URL.rstrip("/")}/{VHOST}'


def end():
    """Delete the virtual host, after its users have disconnected."""
    for leave in LEAVING:
        leave()
    # Remaining listeners would log at length that the virtual host is gone.
    logging.disable()
    if transport_url.cache_info().currsize:
        control('delete_vhost', VHOST)


def queues():
    return control('list_queues', '-p', VHOST, '--no-table-headers', 'name').split()


def control(*words):
    """The output of `rabbitmqctl`."""
    done = subprocess.run(['rabbitmqctl', '--quiet', *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
