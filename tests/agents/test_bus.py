"""The bus, with a real broker and without one."""

import datetime
import re
import shlex
import ssl
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import amqp
import kombu
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from oslo_config import cfg

from computeapi import bus, config
from computeapi.bus import Bus, RemoteFailure, Unanswered
from computeapi.observers.database_metrics import DatabaseMetrics
from tests import broker
from tests.deployment.conftest import free_port
from tests.proxy import Proxy
from tests.waiting import eventually


class Echo:
    """An endpoint that echoes words, or fails."""

    def say(self, context, word, seconds=0):
        time.sleep(seconds)
        return word

    def fail(self, context):
        raise LookupError('there is nothing')


def conf_of(url, exchange='bus-tests', **options):
    conf = config.load()
    bus.register(conf)
    conf.set_override('transport_url', url)
    conf.set_override('control_exchange', exchange)
    for name, value in options.items():
        conf.set_override(name, value, 'oslo_messaging_rabbit')
    return conf


@contextmanager
def opened(url, own=None, **options):
    made = Bus(conf_of(url, **options), own)
    yield made
    made.close()


@pytest.fixture
def served(transport_url):
    with opened(transport_url) as made:
        made.serve('echo', Echo(), 4)
        answered(made, 'echo')
        yield made


def answered(caller, topic):
    """What the topic answers, as soon as it is served."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return caller.call(topic, 'say', 3, word='begin')
        except Unanswered:
            assert time.monotonic() < deadline


def test_what_is_asked_is_answered_and_mistakes_are_told(served):
    assert served.call('echo', 'say', 10, word={'a': [1, None]}) == {'a': [1, None]}
    with pytest.raises(RemoteFailure, match='there is nothing'):
        served.call('echo', 'fail', 10)
    assert served.obstacle(5) is None


def test_who_takes_long_says_meanwhile_that_he_is_at_it(served, monkeypatch):
    monkeypatch.setattr(bus, 'MONITOR_SECONDS', 2)
    assert served.call('echo', 'say', 30, word='late', seconds=3.5) == 'late'


def test_who_is_not_there_is_not_waited_for(served, monkeypatch):
    monkeypatch.setattr(bus, 'MONITOR_SECONDS', 2)
    with pytest.raises(Unanswered):
        served.call('elsewhere', 'say', 300, word='hello')


def test_nobody_waits_for_a_broker_that_is_away_longer_than_he_said(store):
    url = f'rabbit://guest:guest@127.0.0.1:{free_port()}/'
    with opened(url) as made:
        for _ in range(2):
            with pytest.raises(Unanswered):
                made.call('echo', 'say', 0.5, word='hello')
        assert made.obstacle(0.5)
    conf = conf_of(url)
    conf.set_override('backend', 'remote', 'hypervisor')
    assert DatabaseMetrics(conf, store).found()['broker_up'] == 0


@pytest.mark.parametrize('url', ['x://x', 'rabbit://guest:hunter22@h:port', 'rabbit://guest:hunter22@h?x=y', 'x'])
def test_a_broker_that_cannot_exist_is_a_mistake_in_the_configuration(url):
    with pytest.raises(cfg.ConfigFileValueError, match='^transport_url: ') as error:
        Bus(conf_of(url))
    assert 'hunter22' not in str(error.value)


def test_calls_that_hang_do_not_pile_up(monkeypatch):
    with opened(f'rabbit://guest:guest@127.0.0.1:{free_port()}/') as made:
        made.calls = threading.BoundedSemaphore(1)
        for expected in ('accepted no message', '128 calls are already waiting'):
            with pytest.raises(Unanswered, match=expected):
                made.call('echo', 'say', 0.1, word='hello')


@pytest.fixture
def restricted(transport_url):
    """The URL of the broker for a user with the permissions that the documentation gives to the host compute1."""
    text = (Path(__file__).parents[2] / 'docs' / 'how-to' / 'deploying.md').read_text()
    [own] = re.findall(r"^own='(.*)'$", text, re.MULTILINE)
    rights = re.search(r'set_permissions -p compute host-compute1 \\\n(.*)', text)[1]
    topics = re.search(r'set_topic_permissions -p compute host-compute1 (.*)', text)[1]
    name = f'host-{broker.VHOST}'
    broker.control('add_user', name, 'other')
    for command, written in (('set_permissions', rights), ('set_topic_permissions', topics)):
        words = shlex.split(written.replace('$own', own).replace(r'\$', '$'))
        broker.control(command, '-p', broker.VHOST, name, *words)
    address = urlsplit(transport_url)
    yield address._replace(netloc=f'{name}:other@{address.hostname}:{address.port}').geturl()
    broker.control('delete_user', name)


def test_a_host_cannot_read_answers_to_others(restricted, transport_url):
    name = 'computeapi'
    with opened(transport_url, exchange=name) as control, opened(restricted, 'agent-compute1', exchange=name) as agent:
        control.serve('control', Echo(), 4)
        agent.serve('agent-compute1', Echo(), 4)
        for caller, topic in ((agent, 'control'), (control, 'agent-compute1')):
            assert answered(caller, topic) == 'begin'
        replies = [queue for queue in broker.queues() if queue.startswith('reply_')]
        with kombu.Connection(restricted.replace('rabbit:', 'amqp:')) as connection:
            readable = [queue for queue in replies if may_read(connection, queue)]
    assert len(replies) > 1 and len(readable) == 1
    assert re.fullmatch('reply_computeapi-agent-compute1_[0-9a-f]{32}', readable[0])


def test_an_agent_begins_when_its_user_gets_his_permissions(restricted, transport_url, monkeypatch, caplog):
    monkeypatch.setattr(bus, 'AGAIN_SECONDS', 0.2)
    name, user = 'computeapi', urlsplit(restricted).username
    rights = broker.control('list_user_permissions', user, '--no-table-headers').rstrip('\n').split('\t')[1:]
    broker.control('clear_permissions', '-p', broker.VHOST, user)
    with opened(transport_url, exchange=name) as control, opened(restricted, 'agent-compute1', exchange=name) as agent:
        agent.serve('agent-compute1', Echo(), 4)
        eventually(lambda: any('delivers no calls' in each for each in caplog.messages))
        broker.control('set_permissions', '-p', broker.VHOST, user, *rights)
        assert answered(control, 'agent-compute1') == 'begin'


def may_read(connection, queue):
    with connection.channel() as channel:
        try:
            channel.basic_consume(queue, callback=lambda message: None)
        except amqp.AccessRefused:
            return False
    return True


class SecureProxy(Proxy):
    """A proxy for clients that use TLS."""

    def __init__(self, host, port, context):
        self.context = context
        super().__init__(host, port)

    def _admitted(self, client):
        return self.context.wrap_socket(client, server_side=True)


def certificate(folder, name):
    """The paths of a self-signed certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, '127.0.0.1')])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName('localhost')]), False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f'{name}.crt', folder / f'{name}.key'
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return paths


def test_the_bus_speaks_tls_and_knows_whom_with(transport_url, tmp_path):
    (own, key), (other, _) = certificate(tmp_path, 'own'), certificate(tmp_path, 'other')
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, key)
    address = urlsplit(transport_url)
    proxy = SecureProxy(address.hostname, address.port, context)
    url = address._replace(netloc=f'{address.username}:{address.password}@localhost:{proxy.port}').geturl()
    with opened(url, ssl=True, ssl_ca_file=str(own)) as made:
        assert made.obstacle(10) is None
    with opened(url, ssl=True, ssl_ca_file=str(other)) as made:
        assert made.obstacle(2)
    proxy.close()
