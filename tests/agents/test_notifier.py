"""Notifications as their readers receive them from a broker."""

import json
from datetime import datetime

import kombu
import pytest
from oslo_config import cfg

from computeapi import bus
from computeapi.backends.notifier import Notifier
from computeapi.db import notifications as rows
from computeapi.db.notifications import WaitingNotification
from computeapi.errors import NeighbourAway
from computeapi.main import Service
from computeapi.startup import Startup
from tests.api.servers.conftest import create, settle, world  # noqa: F401
from tests.conftest import configured
from tests.deployment.conftest import free_port


def conf_of(folder, url, form='versioned'):
    conf = configured(folder)
    bus.register(conf)
    conf.set_override('notification_format', form, 'notifications')
    conf.set_override('transport_url', url, bus.NOTIFICATIONS)
    conf.set_override('control_exchange', 'nova')
    return conf


@pytest.fixture
def received(transport_url):
    """received(queue): the next message in a queue; None: there is none."""
    connection = kombu.Connection(transport_url.replace('rabbit://', 'amqp://'))

    def get(queue):
        channel = connection.channel()
        try:
            message = channel.basic_get(queue, no_ack=True)
        except connection.channel_errors:
            # Nothing has been sent to it.
            return None
        return None if message is None else json.loads(json.loads(message.body)['oslo.message'])

    yield get
    connection.release()


NOTIFICATION = WaitingNotification(
    id=1,
    message_id='5b6c791d-5709-4f36-8fbe-c3e02869e35d',
    created_at=datetime(2026, 1, 31, 12),
    format='versioned',
    priority='info',
    publisher_id='nova-compute:compute1',
    event_type='instance.create.end',
    context={'user_id': 'bob'},
    payload={'name': 'server'},
    lease_until=None,
)


@pytest.mark.parametrize(
    ('form', 'priority', 'queue'),
    [
        ('versioned', 'info', 'versioned_notifications.info'),
        ('versioned', 'error', 'versioned_notifications.error'),
        ('unversioned', 'info', 'notifications.info'),
    ],
)
def test_a_message(tmp_path, transport_url, received, form, priority, queue):
    notifier = Notifier(conf_of(tmp_path, transport_url))
    notifier.send(NOTIFICATION._replace(format=form, priority=priority))
    message = received(queue)
    assert {name: message[name] for name in message if name != '_unique_id'} == {
        'message_id': NOTIFICATION.message_id,
        'publisher_id': 'nova-compute:compute1',
        'event_type': 'instance.create.end',
        'priority': priority.upper(),
        'payload': {'name': 'server'},
        'timestamp': '2026-01-31 12:00:00',
        '_context_user_id': 'bob',
    }
    assert received(queue) is None
    notifier.transport.cleanup()


def test_a_broker_that_is_away(tmp_path):
    notifier = Notifier(conf_of(tmp_path, f'rabbit://guest:guest@127.0.0.1:{free_port()}/'))
    with pytest.raises(NeighbourAway):
        notifier.send(NOTIFICATION)
    notifier.transport.cleanup()


def test_a_broker_that_refuses(tmp_path, transport_url):
    notifier = Notifier(conf_of(tmp_path, f'{transport_url}-absent'))
    with pytest.raises(NeighbourAway):
        notifier.send(NOTIFICATION)
    notifier.transport.cleanup()


def test_a_url_that_is_none(tmp_path):
    with pytest.raises(cfg.ConfigFileValueError, match='transport_url'):
        Notifier(conf_of(tmp_path, 'nonsense://'))


@pytest.fixture
def conf(tmp_path, transport_url):
    return conf_of(tmp_path, transport_url, 'both')


def test_a_server_is_told_through_the_broker(create, settle, conf, store, received, service):
    store.change(rows.delete, store.query(rows.NOTIFICATIONS.all, rows.OLDEST))
    server = create().json['server']['id']
    settle()
    service.publishers[0].act()
    for queue, prefix in (('versioned_notifications.info', ''), ('notifications.info', 'compute.')):
        messages = [received(queue) for _ in range(2)]
        assert [each['event_type'] for each in messages] == [
            f'{prefix}instance.create.start',
            f'{prefix}instance.create.end',
        ]
        assert server in json.dumps(messages[0])
    assert store.query(rows.waiting) == 0


def test_a_wrong_broker_is_reported_at_the_start(tmp_path, store):
    with pytest.raises(cfg.ConfigFileValueError, match='transport_url'):
        Startup(Service(conf_of(tmp_path, 'nonsense://'), store))
