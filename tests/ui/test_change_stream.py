"""The stream of server changes: to whom they are sent, and when it ends."""

import threading
from contextlib import closing
from datetime import timedelta

import orjson
import pytest
import requests
import webob

from computeapi.db.engine import Store
from computeapi.db.tables.servers import servers
from computeapi.testing import Cloud
from computeapi.ui import change_stream
from computeapi.ui.login import PageLogin

OWN = {'X-Computeapi-Page': '1'}


@pytest.fixture(scope='module')
def cloud():
    with Cloud() as cloud:
        yield cloud


class Listener:
    """A user's browser, and the stream that it reads."""

    def __init__(self, cloud, user, headers=OWN):
        self.cloud, self.session, self.user = cloud, requests.Session(), user
        given = {'user': user, 'password': cloud.passwords[user]}
        self.shown = self.ask('session', 'POST', json=given).json()
        self.answer = self.ask('stream', headers=headers, stream=True)
        self.lines = self.answer.iter_lines()
        if self.answer.ok:
            self.next()

    def ask(self, path, method='GET', headers=OWN, **more):
        return self.session.request(method, f'{self.cloud.url}/ui/{path}', headers=headers, timeout=60, **more)

    def next(self):
        """The content of the next event: None if it is empty, 'end' for the last one. Raises StopIteration."""
        lines = []
        while line := next(self.lines):
            lines.append(line)
        if b'event: end' in lines:
            return 'end'
        data = [line.removeprefix(b'data: ') for line in lines if line.startswith(b'data: ')]
        return orjson.loads(data[0]) if data else None

    def hears(self):
        """The IDs of the next servers reported."""
        while not (heard := self.next()):
            pass
        return heard['servers']

    def close(self):
        self.answer.close()
        self.session.close()


@pytest.fixture
def listening(cloud):
    """listen(user): a Listener, which is closed at the end of the test."""
    opened = []

    def listen(user='demo', **more):
        opened.append(Listener(cloud, user, **more))
        return opened[-1]

    yield listen
    for each in opened:
        each.close()


def boot(cloud, user):
    """Creates a server of a user; returns it when it is active."""
    connection = cloud.connection(user)
    image = next(connection.image.images()).id
    made = connection.compute.create_server(name='web', flavor_id='1', image_id=image, networks='none')
    return connection.compute.wait_for_server(made, interval=0.05)


def test_who_listens_hears_of_their_own_servers_alone(cloud, listening):
    listener, administrator = listening('demo'), listening('admin')
    assert listener.answer.headers['Content-Type'].startswith('text/event-stream')
    assert listener.answer.headers['Cache-Control'] == 'no-store'
    other, own = boot(cloud, 'admin').id, boot(cloud, 'demo').id
    heard = listener.hears()
    assert heard == [own]
    told = set()
    while told != {other, own}:
        told |= set(administrator.hears())
    cloud.connection('admin').compute.delete_server(other)
    cloud.connection('demo').compute.delete_server(own)
    while (heard := listener.hears()) == [own]:
        if cloud.events.entries(type='server.deleted', resource=own):
            break
    assert other not in heard


def test_no_other_place_listens(listening):
    assert listening(headers={}).answer.status_code == 403
    assert listening(headers=OWN | {'Sec-Fetch-Site': 'cross-site'}).answer.status_code == 403
    assert listening().ask('stream', 'HEAD').status_code == 405
    nobody = requests.get(f'{listening().cloud.url}/ui/stream', headers=OWN, timeout=60)
    assert nobody.status_code == 401


def test_who_logs_out_hears_nothing_any_more(listening):
    listener = listening()
    listener.ask('session', 'DELETE')
    while (heard := listener.next()) != 'end':
        assert heard is None
    with pytest.raises(StopIteration):
        listener.next()


def test_whose_token_is_worth_nothing_hears_nothing_any_more():
    with Cloud() as cloud, closing(Listener(cloud, 'demo')) as listener:
        cloud.reset()
        boot(cloud, 'demo')
        while (heard := listener.next()) != 'end':
            assert heard is None


def test_who_may_not_list_servers_hears_of_none(tmp_path):
    (tmp_path / 'policy.yaml').write_text('"os_compute_api:servers:detail": "role:admin"')
    options = {('oslo_policy', 'policy_file'): str(tmp_path / 'policy.yaml')}
    with (
        Cloud(options=options) as cloud,
        closing(Listener(cloud, 'demo')) as listener,
        closing(Listener(cloud, 'admin')) as administrator,
    ):
        assert (listener.answer.status_code, administrator.answer.status_code) == (403, 200)


def test_what_another_process_changes_is_heard(cloud, listening):
    server = boot(cloud, 'demo')
    listener = listening()
    store = Store(cloud.tools.service.store.url.render_as_string(hide_password=False))
    with store.write() as connection:
        change = servers.update().where(servers.c.uuid == server.id)
        connection.execute(change.values(task_state='rebooting', updated_at=store.clock()))
    assert listener.hears() == [server.id]
    store.close()
    cloud.reset()


def test_the_clock_of_the_cloud_may_stand_or_be_set_back(cloud, listening):
    cloud.clock.freeze()
    server = boot(cloud, 'demo')
    listener = listening()
    compute = cloud.connection('demo').compute
    for act in (compute.lock_server, compute.unlock_server):
        act(server)
        assert listener.hears() == [server.id]
    cloud.clock.freeze(cloud.clock() - timedelta(days=1))
    compute.lock_server(server)
    assert listener.hears() == [server.id]
    cloud.reset()


def test_many_changes_are_told_as_many(cloud, listening, monkeypatch):
    monkeypatch.setattr(change_stream, 'MAX_CHANGES', 1)
    cloud.reset()
    listener = listening()
    for _ in range(3):
        boot(cloud, 'demo')
    while (heard := listener.next()) is None or not heard['more']:
        pass
    assert heard == {'servers': [], 'more': True}
    cloud.reset()


def test_nobody_looks_while_nobody_listens(cloud, listening):
    store = cloud.tools.service.store
    listener = listening()
    assert store.change_listeners and 'change-stream' in {thread.name for thread in threading.enumerate()}
    listener.close()
    # The end of a connection is noticed when something is sent.
    while store.change_listeners:
        boot(cloud, 'demo')
    cloud.reset()


def test_listeners_are_not_many(cloud, listening, monkeypatch):
    monkeypatch.setattr(change_stream, 'MAX_OF_ONE', 2)
    assert [listening().answer.status_code for _ in range(3)] == [200, 200, 503]
    refused = listening()
    assert refused.answer.status_code == 503 and int(refused.answer.headers['Retry-After']) > 0
    assert listening('admin').answer.status_code == 200
    monkeypatch.setattr(change_stream, 'MAX_LISTENERS', 3)
    assert listening('admin').answer.status_code == 503


def test_a_web_server_that_gives_each_a_thread_has_no_stream():
    login = PageLogin(lambda environ, start_response: webob.Response()(environ, start_response), True)
    name = login.sessions.open('demo', 'demo', (), 'token', 1000)

    def ask(path):
        request = webob.Request.blank(path, base_url='http://cloud.example', headers=OWN)
        request.cookies['computeapi-page'] = name
        return request.get_response(login)

    assert ask('/session').json['session']['stream'] is False
    assert ask('/stream').status_int == 404


def test_what_is_of_another_project_does_not_even_wake_a_listener():
    heard = []
    first, second = (change_stream.ChangeListener('demo', project, lambda: heard.append(1)) for project in ('a', None))
    change = change_stream.ChangedServer('id', 'b', 'web', 'active', None, 1, 100, None, None, None, None)
    first.notify([change], more=False)
    assert not heard and first.take() == ([], False)
    second.notify([change], more=False)
    assert heard == [1] and second.take() == (['id'], False) and second.take() == ([], False)
