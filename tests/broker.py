"""The RabbitMQ of tests: a virtual host of its own for each process of them, which goes with it.

COMPUTEAPI_TEST_RABBITMQ names one, e.g. rabbit://guest:guest@127.0.0.1:5672; what needs it is asked for where it does.
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
    """Where nobody else is."""
    user = urlsplit(URL).username
    control('add_vhost', VHOST)
    control('set_permissions', '-p', VHOST, user, '.*', '.*', '.*')
    return f'{URL.rstrip("/")}/{VHOST}'


def end():
    """Remove what there is; whoever is connected leaves first."""
    for leave in LEAVING:
        leave()
    # What still listens would tell, at length, that the broker knows it no more.
    logging.disable()
    if transport_url.cache_info().currsize:
        control('delete_vhost', VHOST)


def queues():
    return control('list_queues', '-p', VHOST, '--no-table-headers', 'name').split()


def control(*words):
    """What `rabbitmqctl` prints."""
    done = subprocess.run(['rabbitmqctl', '--quiet', *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
