"""The event stream: every committed change, once, in order, as it happens."""

import json
import math
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
import requests
import sqlalchemy as sa

from computeapi.db.change_capture import RowChange
from computeapi.errors import Gone, Invalid
from computeapi.kit import shell
from computeapi.kit.events import MAX_READERS, Events
from computeapi.kit.events.event import EventFilter
from computeapi.kit.variables import TOKEN_HEADER
from computeapi.testing import Cloud
from tests.waiting import eventually

TIMEOUT = 60


def act(http, server, **action):
    answer = http.post(f'/v2.1/servers/{server}/action', action)
    assert answer.status_code in (200, 202, 204), answer.text


class Stream:
    """Server-sent events as a client parses them according to the HTML standard: the data by ID."""

    def __init__(self, cloud, query='', **headers):
        headers = {TOKEN_HEADER: cloud.control_token, 'Accept': 'text/event-stream', **headers}
        url = f'{cloud.url}/control/events{query}'
        self.answer = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
        assert self.answer.status_code == 200, self.answer.text
        assert self.answer.headers['Content-Type'].startswith('text/event-stream')
        self.messages = self._messages()
        self.last_id = None

    def _messages(self):
        kind, data, until = 'message', [], time.monotonic() + TIMEOUT
        for line in self.answer.iter_lines(chunk_size=None):
            # The stream also sends lines while nothing happens.
            assert time.monotonic() < until
            name, _, value = line.decode().partition(':')
            if not line:
                if data:
                    yield kind, json.loads('\n'.join(data))
                kind, data = 'message', []
            elif name == 'data':
                data.append(value.removeprefix(' '))
            elif name == 'id':
                self.last_id = value.removeprefix(' ')
            elif name == 'event':
                kind = value.removeprefix(' ')

    def take(self, count):
        found = [next(self.messages) for _ in range(count)]
        assert all(kind == 'message' for kind, _ in found)
        return [data for _, data in found]

    def rest(self):
        """The remaining events, and the reason for the end."""
        *found, (kind, end) = self.messages
        assert kind == 'end'
        return [data for _, data in found], end['reason']

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.answer.close()


@pytest.fixture
def own():
    """A cloud that a test may stop."""
    with Cloud() as cloud:
        yield cloud


# ------------------------------------------------------------------ content of events


def lives(events):
    """The final state of each resource according to its events, each of which must continue where the previous one
    ended."""
    states = {}
    for event in events:
        state = states.get(event.resource_id)
        if event.type.endswith('.created'):
            assert state is None and event.before is None
            states[event.resource_id] = dict(event.after)
        elif event.type.endswith('.deleted'):
            assert event.after is None and (state is None or event.before == state)
            states[event.resource_id] = None
        elif state is not None:
            assert event.before.keys() == event.after.keys() != set()
            assert all(state[name] == value != event.after[name] for name, value in event.before.items())
            state |= event.after
    return states


def steps(cloud, server):
    """The (status, task_state) that a server passed through, according to its events."""
    states, state = [], {}
    for event in cloud.events.entries(type='server', resource=server):
        state |= event.after or {'status': 'DELETED', 'task_state': None}
        states.append((state['status'], state['task_state']))
    return [state for place, state in enumerate(states) if place == 0 or state != states[place - 1]]


def test_each_state_of_a_server_is_told_once_and_in_order(cloud, http):
    server = http.boot()
    cloud.events.wait_for(server=server, status='ACTIVE')
    act(http, server, resize={'flavorRef': '2'})
    resized = cloud.events.wait_for(server=server, status='VERIFY_RESIZE')
    act(http, server, confirmResize=None)
    confirmed = cloud.events.wait_for(server=server, status='ACTIVE', since=resized.id)
    act(http, server, shelve=None)
    cloud.events.wait_for(server=server, status='SHELVED_OFFLOADED', since=confirmed.id)
    http.delete(f'/v2.1/servers/{server}')
    cloud.events.wait_for(type='server.deleted', server=server)
    assert steps(cloud, server) == [
        ('BUILD', 'scheduling'),
        ('BUILD', 'networking'),
        ('BUILD', 'block_device_mapping'),
        ('BUILD', 'spawning'),
        ('ACTIVE', None),
        ('RESIZE', 'resize_prep'),
        ('RESIZE', 'resize_migrating'),
        ('RESIZE', 'resize_migrated'),
        ('RESIZE', 'resize_finish'),
        ('VERIFY_RESIZE', None),
        ('ACTIVE', None),
        ('ACTIVE', 'shelving'),
        ('ACTIVE', 'shelving_image_uploading'),
        ('SHELVED', 'shelving_offloading'),
        ('SHELVED_OFFLOADED', None),
        ('SHELVED_OFFLOADED', 'deleting'),
        ('DELETED', None),
    ]
    events = cloud.events.entries()
    assert [event.id for event in events] == list(range(events[0].id, cloud.events.last + 1))
    assert lives(events)[server] is None
    [migration] = {event.resource_id for event in cloud.events.entries(type='migration', server=server)}
    assert lives(events)[migration]['status'] == 'confirmed'


def test_what_else_is_told(cloud, http):
    project = http.get('/identity/v3/auth/tokens', headers={'X-Subject-Token': http.session.headers['X-Auth-Token']})
    project = project.json()['token']['project']['id']
    volumes = '/volume/v3/volumes'
    volume = http.post(volumes, {'volume': {'size': 1, 'name': 'data'}}).json()['volume']['id']
    snapshot = http.post('/volume/v3/snapshots', {'snapshot': {'volume_id': volume}}).json()['snapshot']['id']
    server = http.boot()
    cloud.events.wait_for(server=server, status='ACTIVE')
    attachment = {'volumeAttachment': {'volumeId': volume}}
    http.post(f'/v2.1/servers/{server}/os-volume_attachments', attachment)
    cloud.events.wait_for(type='volume.changed', resource='data', status='in-use')
    image = {'name': 'mine', 'disk_format': 'raw', 'container_format': 'bare'}
    image = http.post('/image/v2/images', image).json()['id']
    network = http.post('/networking/v2.0/networks', {'network': {'name': 'net'}}).json()['network']['id']
    port = http.post('/networking/v2.0/ports', {'port': {'network_id': network}}).json()['port']['id']
    http.delete(f'/networking/v2.0/ports/{port}')
    with cloud.hosts.down('compute1'):
        pass
    told = {event.type for event in cloud.events.entries(project=project)}
    assert told >= {'volume.created', 'volume_snapshot.created', 'volume_attachment.created', 'image.created'}
    assert told >= {'network.created', 'port.created', 'port.deleted'}
    [created] = cloud.events.entries(type='volume.created')
    assert (created.resource_id, created.name, created.project_id) == (volume, 'data', project)
    [attached] = cloud.events.entries(type='volume_attachment.created')
    assert (attached.server_id, attached.after['volume_id']) == (server, volume)
    assert lives(cloud.events.entries())[snapshot]['status'] == 'available'
    assert lives(cloud.events.entries())[image]['status'] == 'queued'
    downs = [event.after for event in cloud.events.entries(type='service', resource='compute1')]
    assert downs == [{'state': 'down'}, {'state': 'up'}]


def test_what_is_told_holds_no_secrets(cloud, http):
    server = http.boot(user_data='aHVzaC1odXNo', metadata={'key': 'hush-hush'})
    cloud.events.wait_for(server=server, status='ACTIVE')
    told = http.control('GET', '/events').text
    assert server in told and 'hush' not in told and 'aHVzaC' not in told


def test_what_is_rolled_back_is_not_told(cloud, http):
    server = http.boot()
    before = cloud.events.wait_for(server=server, status='ACTIVE')
    store = cloud.tools.service.store

    def progress(connection, value):
        connection.execute(sa.text('UPDATE servers SET progress = :value'), {'value': value})

    with pytest.raises(ZeroDivisionError), store.write() as connection:
        progress(connection, 1)
        raise ZeroDivisionError
    with store.write() as connection:
        progress(connection, 2)
        point = connection.begin_nested()
        progress(connection, 3)
        point.rollback()
    with pytest.raises(sa.exc.IntegrityError), store.write() as connection:
        # This statement fails at commit.
        connection.exec_driver_sql('PRAGMA defer_foreign_keys=ON')
        progress(connection, 4)
        columns = 'id, volume_id, status, mode, created_at'
        connection.execute(sa.text(f"INSERT INTO volume_attachments ({columns}) VALUES ('a', 'none', 'x', 'rw', 0)"))
    with store.write() as connection:
        progress(connection, 5)
        progress(connection, 6)
    with store.write() as connection:
        progress(connection, 7)
        progress(connection, 6)
    told = cloud.events.entries(since=before.id)
    assert [(event.type, event.before, event.after) for event in told] == [
        ('server.changed', {'progress': 0}, {'progress': 2}),
        ('server.changed', {'progress': 2}, {'progress': 6}),
    ]


def test_many_at_a_time_are_told_in_the_order_in_which_they_are_committed(cloud, http):
    def live(name):
        server = http.boot(name)
        created = cloud.events.wait_for(server=server, status='ACTIVE')
        act(http, server, **{'os-stop': None})
        cloud.events.wait_for(server=server, status='SHUTOFF', since=created.id)
        return server

    before = cloud.events.last
    with Stream(cloud) as stream, ThreadPoolExecutor(6) as threads:
        servers = list(threads.map(live, [f'web-{number}' for number in range(8)]))
        events = cloud.events.entries(since=before)
        assert [event['id'] for event in stream.take(len(events))] == [event.id for event in events]
    found = lives(events)
    assert {found[server]['status'] for server in servers} == {'SHUTOFF'}
    assert [event.time for event in events] == sorted(event.time for event in events)


# ------------------------------------------------------------------ the history


def volume(name, before=None, after=None):
    return RowChange('volume', name, name, 'mine', None, before, after)


def history(most=10):
    return Events(datetime.now, most)


def emit(events, *changes):
    events.settle(events.expect(changes), committed=True)


def test_nothing_is_told_before_what_was_committed_before():
    events = history()
    first, second, third = (events.expect([volume(name, None, {'status': 'x'})]) for name in 'abc')
    events.settle(third, committed=True)
    events.settle(second, committed=False)
    assert events.entries() == []
    events.settle(first, committed=True)
    assert [(event.id, event.name) for event in events.entries()] == [(1, 'a'), (2, 'c')]


def test_who_does_not_want_them_has_lost_none():
    events = history(most=2)
    with events.reading(EventFilter(type='server'), 0, lambda: None) as reader:
        for number in range(5):
            emit(events, volume(str(number), None, {'status': 'x'}))
        assert (reader.take(), reader.lost) == ([], 0)
    with events.reading(EventFilter(type='volume'), 0, lambda: None) as reader:
        assert [event.id for event in reader.take()] == [4, 5]
        assert reader.lost == 3


def test_who_is_too_slow_in_python_is_told():
    events = history(most=2)
    following = events.follow(since=0, timeout=0)
    emit(events, volume('a', None, {'status': 'x'}))
    assert next(following).name == 'a'
    emit(events, *(volume(name, None, {'status': 'x'}) for name in 'bcde'))
    with pytest.raises(Gone, match='2 events'):
        next(following)
    assert not events.readers


def test_numbers_of_another_cloud_are_none_of_this_one():
    events = history()
    emit(events, volume('a', None, {'status': 'x'}))
    assert [event.name for event in events.entries(since=50)] == ['a']
    with events.reading(EventFilter(), 50, lambda: None) as reader:
        assert [event.name for event in reader.take()] == ['a']


@pytest.mark.parametrize('test', [{'type': 'sever'}, {'stat': 'ACTIVE'}, {'type': ['server', 'volume.gone']}])
def test_tests_that_nothing_could_pass_are_refused(test):
    with pytest.raises(Invalid):
        history().entries(**test)


def test_waiting_ends_with_what_there_was(cloud, http):
    server = http.boot()
    cloud.events.wait_for(server=server, status='ACTIVE')
    with pytest.raises(TimeoutError, match='server.created web'):
        cloud.events.wait_for(server=server, status='SHUTOFF', timeout=0)


def test_who_waits_for_as_long_as_it_takes_does_so_until_the_cloud_ends():
    events = Events(datetime.now)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(events.wait_for, timeout=math.inf)
        time.sleep(0.1)
        events.end()
        with pytest.raises(TimeoutError, match='No such event occurred'):
            waiting.result(TIMEOUT)


def test_following_in_python(cloud, http):
    following = cloud.events.follow(type='server', timeout=TIMEOUT)
    server = http.boot()
    for event in following:
        if (event.after or {}).get('status') == 'ACTIVE':
            break
    assert event.resource_id == server
    following.close()
    assert not cloud.events.readers


# ------------------------------------------------------------------ over HTTP


def test_a_stream_goes_on_where_it_broke_off(cloud, http):
    with Stream(cloud) as stream:
        server = http.boot()
        seen = stream.take(3)
    http.delete(f'/v2.1/servers/{server}')
    cloud.events.wait_for(type='server.deleted', server=server)
    with Stream(cloud, '?since=0', **{'Last-Event-ID': stream.last_id}) as stream:
        seen += stream.take(cloud.events.last - seen[-1]['id'])
    assert [event['id'] for event in seen] == [event.id for event in cloud.events.entries(type='server')]
    with Stream(cloud, f'?since={seen[0]["id"]}') as stream:
        assert stream.take(len(seen) - 1) == seen[1:]


def test_who_listens_chooses(cloud, http):
    one, two = http.boot('one'), http.boot('two')
    for server in (one, two):
        cloud.events.wait_for(server=server, status='ACTIVE')
    http.delete(f'/v2.1/servers/{one}')
    cloud.events.wait_for(type='server.deleted')
    all_since = f'since={cloud.events.since}'
    with Stream(cloud, f'?type=server.created,server.deleted&{all_since}') as stream:
        assert [event['name'] for event in stream.take(3)] == ['one', 'two', 'one']
    with Stream(cloud, f'?server={two}&status=ACTIVE&{all_since}') as stream:
        assert stream.take(1)[0]['after']['status'] == 'ACTIVE'
    listed = http.control('GET', '/events?project=another').json()
    assert listed['events'] == []
    assert listed['last'] == cloud.events.last


@pytest.mark.parametrize('query', ['?type=sever', '?since=x', '?since=-1', '?wait=1000', '?no=1', '?type='])
def test_what_makes_no_sense_is_refused(http, query):
    for accept in ('application/json', 'text/event-stream'):
        url = f'{http.cloud.url}/control/events{query}'
        headers = {TOKEN_HEADER: http.cloud.control_token, 'Accept': accept}
        assert requests.get(url, headers=headers, timeout=TIMEOUT).status_code == 400


def test_it_takes_the_token(cloud):
    for path in ('/control/events', '/control/events.jsonl', '/control/webhooks'):
        for headers in ({}, {TOKEN_HEADER: 'wrong'}):
            answer = requests.get(cloud.url + path, headers=headers, timeout=TIMEOUT)
            assert answer.status_code == 401


def test_a_list_is_waited_for(cloud, http):
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(http.control, 'GET', f'/events?type=server&wait=60&since={cloud.events.last}')
        eventually(lambda: cloud.events.readers)
        server = http.boot()
        found = asked.result().json()
    assert found['events'][0]['resource_id'] == server and found['last'] >= found['events'][-1]['id']
    # The boot may continue until then.
    with cloud.tools.paused():
        assert http.control('GET', f'/events?wait=0&since={cloud.events.last}').json()['events'] == []
    eventually(lambda: not cloud.events.readers)


def test_streams_occupy_no_thread_and_are_bounded(cloud, http):
    streams = [Stream(cloud) for _ in range(MAX_READERS)]
    try:
        assert http.control('GET', '/events').status_code == 503
        server = http.boot()
        for stream in streams:
            assert stream.take(1)[0]['resource_id'] == server
        # Nor does a reset wait for them.
        assert http.control('POST', '/reset').status_code == 204
    finally:
        for stream in streams:
            stream.answer.close()
    eventually(lambda: not cloud.events.readers)
    assert http.control('GET', '/events').status_code == 200


def test_who_is_too_slow_is_told_and_may_come_again(cloud):
    many = [volume('many', {'status': str(number)}, {'status': 'x' * 4000}) for number in range(100)]
    connection = socket.create_connection(('127.0.0.1', int(cloud.url.rpartition(':')[2])), timeout=TIMEOUT)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with connection:
        request = f'GET /control/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n{TOKEN_HEADER}: '
        connection.sendall(f'{request}{cloud.control_token}\r\n\r\n'.encode())
        eventually(lambda: cloud.events.readers)
        emit(cloud.events, *many)
        # This listener read nothing while far more events happened than are kept.
        emit(cloud.events, *many * 201)
        data = b''
        while not data.endswith(b'0\r\n\r\n'):
            assert (piece := connection.recv(2**20))
            data += piece
    end = data[data.rindex(b'event: end') :]
    assert b'dropped before they were read' in end
    again = int(data[: -len(end)].rpartition(b'id: ')[2])
    with Stream(cloud, **{'Last-Event-ID': str(again)}) as stream:
        assert stream.take(1)[0]['id'] == again + 1
    eventually(lambda: not cloud.events.readers)


@pytest.mark.parametrize('version', ['1.0', '1.1'])
def test_who_asks_no_more_gets_what_there_is_and_the_end(cloud, version):
    emit(cloud.events, volume('there', None, {'status': 'x'}))
    with socket.create_connection(('127.0.0.1', int(cloud.url.rpartition(':')[2])), timeout=TIMEOUT) as connection:
        request = f'GET /control/events?since={cloud.events.last - 1} HTTP/{version}\r\nHost: a\r\n'
        connection.sendall(f'{request}Accept: text/event-stream\r\n{TOKEN_HEADER}: '.encode())
        connection.sendall(f'{cloud.control_token}\r\n\r\n'.encode())
        connection.shutdown(socket.SHUT_WR)
        data = b''.join(iter(lambda: connection.recv(2**16), b''))
    assert data.startswith(b'HTTP/1.1 200') and data.count(b'"name":"there"') == 1
    assert data.index(b'"name":"there"') < data.index(b'event: end')
    eventually(lambda: not cloud.events.readers)


def test_who_goes_away_is_forgotten(cloud):
    for _ in range(3):
        with Stream(cloud):
            eventually(lambda: cloud.events.readers)
        eventually(lambda: not cloud.events.readers)


# ------------------------------------------------------------------ another cloud


def test_a_cloud_that_is_put_back_is_one_event(cloud, http):
    with Stream(cloud) as stream:
        for name in ('one', 'two'):
            cloud.events.wait_for(server=http.boot(name), status='ACTIVE')
        cloud.snapshot('two')
        last = cloud.events.last
        while stream.take(1)[0]['id'] < last:
            pass
        cloud.restore('two')
        cloud.restore('two')
        assert [event.type for event in cloud.events.entries(since=last)] == ['cloud.restored'] * 2
        # Later events are delivered as before.
        http.log_in()
        cloud.events.wait_for(server=http.boot('three'), status='ACTIVE')
        cloud.reset()
        http.log_in()
        cloud.events.wait_for(server=http.boot('four'), status='ACTIVE')
        assert [event.name for event in cloud.events.entries(type='server.created')] == ['four']
        told = stream.take(cloud.events.last - last)
    creations = [event['name'] for event in told if event['type'] == 'server.created']
    assert creations == ['three', 'four']
    assert [event['type'] for event in told if event['type'].startswith('cloud')] == [
        'cloud.restored',
        'cloud.restored',
        'cloud.reset',
    ]


def test_what_a_restore_undid_is_not_waited_for(cloud, http):
    server = http.boot()
    cloud.events.wait_for(server=server, status='ACTIVE')
    cloud.snapshot('one')
    http.delete(f'/v2.1/servers/{server}')
    gone = cloud.events.wait_for(type='server.deleted')
    cloud.restore('one')
    with pytest.raises(TimeoutError):
        cloud.events.wait_for(type='server.deleted', timeout=0.2)
    http.log_in()
    http.delete(f'/v2.1/servers/{server}')
    assert cloud.events.wait_for(type='server.deleted', timeout=5).id > gone.id
    assert [event.id for event in cloud.events.entries(type='server.deleted', since=0)][-2] == gone.id


def test_a_cloud_ends_with_streams_that_are_open():
    before = set(threading.enumerate())
    with Cloud() as own, ThreadPoolExecutor(2) as threads:
        streams = [Stream(own) for _ in range(20)]
        listed = threads.submit(
            requests.get,
            f'{own.url}/control/events?wait=60&since={own.events.last}',
            headers={TOKEN_HEADER: own.control_token},
            timeout=TIMEOUT,
        )
        followed = threads.submit(list, own.events.follow())
        eventually(lambda: len(own.events.readers) == 22)
        own.stop()
        assert [stream.rest() for stream in streams] == [([], 'The cloud is shutting down, or the client left.')] * 20
        assert listed.result().json()['events'] == followed.result() == []
    assert set(threading.enumerate()) <= before
    with pytest.raises(requests.ConnectionError):
        requests.get(own.url, timeout=TIMEOUT)


def test_a_branch_tells_its_own(cloud, http):
    cloud.events.wait_for(server=http.boot('here'), status='ACTIVE')
    with cloud.branch() as other:
        assert other.events.entries() == []
        image = next(other.connection().image.images())
        other.connection().compute.create_server(name='there', flavor_id='1', image_id=image.id, networks='none')
        other.events.wait_for(server='there', status='ACTIVE')
    assert {event.name for event in cloud.events.entries()} == {'here'}


def test_the_command_prints_them_as_they_come(own, monkeypatch, capsys):
    for name, value in own.environ.items():
        monkeypatch.setenv(name, value)
    with ThreadPoolExecutor(1) as threads:
        printed = threads.submit(shell.run, ['watch-events', '--type', 'volume'])
        eventually(lambda: own.events.readers)
        own.connection().block_storage.create_volume(size=1, name='data')
        text = ''
        while 'volume.created' not in text:
            text += capsys.readouterr().out
            time.sleep(0.01)
        own.stop()
        printed.result()
    first, last = map(json.loads, (text + capsys.readouterr().out).splitlines())
    assert (first['type'], first['name'], last['type']) == ('volume.created', 'data', 'stream.end')
