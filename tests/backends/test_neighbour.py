"""Requests to other services: credentials, and the handling of responses, with a server that speaks HTTP."""

import logging
import socketserver
import threading
import uuid
from collections import Counter
from dataclasses import replace
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest
import webob
from cryptography.fernet import Fernet

from computeapi import config
from computeapi.backends.encryption import Cipher, UnreadableToken
from computeapi.backends.image.glance import GlanceImages
from computeapi.backends.neighbour import NeighbourService, NoToken, Refused
from computeapi.backends.volume.cinder import CinderVolumes
from computeapi.context import Context
from computeapi.errors import (
    Forbidden,
    ImageNotFound,
    NeighbourAway,
    NotAuthenticated,
    SnapshotNotFound,
    TooLarge,
    VolumeNotFound,
)
from tests.proxy import Proxy

PASSWORD, KEY = 'own-password', Fernet.generate_key().decode()
CONF = """
[service_user]
auth_type = password
auth_url = {url}/identity/v3
username = nova
password = own-password
project_name = service
user_domain_id = default
project_domain_id = default
task_token_key = {key}
[cinder]
connect_retries = 0
timeout = 1
"""
OWN = 'f00df00df00df00df00df00df00df00d'
ALICE = Context(user_id='alice', project_id='apples', auth_token='callers-token', request_id='req-1')
PAGE = '<html><head><title>409 Conflict</title></head><body><h1>409 Conflict</h1>In &quot;use&quot;.<br /></html>'


class TinyCloud:
    """A Keystone at /identity, a Cinder at /volume, and a Glance at /image that stores nothing."""

    def __init__(self):
        self.url, self.asked, self.tokens, self.logins = '', [], set(), 0
        self.answers, self.keystone, self.catalog, self.released = {}, None, True, threading.Event()
        self.volumes_at = 'volume'

    def __call__(self, environ, start_response):
        req = webob.Request(environ)
        place, _, path = req.path_info.strip('/').partition('/')
        answer = getattr(self, place)(req, f'/{path}')
        return answer(environ, start_response)

    def identity(self, req, path):
        if self.keystone is not None:
            return webob.Response(status=self.keystone)
        if req.method == 'GET':
            return webob.Response(json={'version': self.version('v3.14', '/identity/v3/')})
        if req.json['auth']['identity']['password']['user']['password'] != PASSWORD:
            return webob.Response(status=401)
        self.logins += 1
        token = uuid.uuid4().hex
        self.tokens.add(token)
        places = {'block-storage': f'/{self.volumes_at}/v3/{OWN}', 'image': '/image'} if self.catalog else {}
        endpoints = {kind: {'interface': 'public', 'region': 'R', 'url': self.url + at} for kind, at in places.items()}
        catalog = [{'type': kind, 'endpoints': [endpoint]} for kind, endpoint in endpoints.items()]
        body = {'methods': ['password'], 'user': {'id': 'nova', 'name': 'nova'}, 'roles': [], 'catalog': catalog}
        body |= {'project': {'id': OWN, 'name': 'service'}, 'expires_at': '2100-01-01T00:00:00.000000Z'}
        return webob.Response(status=201, json={'token': body}, headerlist=[*JSON, ('X-Subject-Token', token)])

    def version(self, name, path):
        return {'id': name, 'status': 'CURRENT', 'links': [{'rel': 'self', 'href': self.url + path}]}

    def image(self, req, path):
        if path == '/' and self.answers.get('image'):
            return webob.Response(status=self.answers['image'])
        if req.method == 'GET' and path != '/':
            return webob.Response(status=404)
        if req.method == 'GET':
            return webob.Response(json={'versions': [self.version('v2.9', '/image/v2/')]})
        return webob.Response(status=413, text=PAGE, content_type='text/html', charset='UTF-8')

    def volume(self, req, path):
        if path in ('/', '/v3', '/v3/'):
            facts = {'version': '3.70', 'min_version': '3.0'}
            return webob.Response(json={'versions': [self.version('v3.0', '/volume/v3/') | facts]})
        self.asked.append(req)
        answer = self.answers.get(path.rpartition('/')[2], 200)
        if answer == 'hang':
            self.released.wait(10)
        if 'X-Service-Token' in req.headers and req.headers['X-Service-Token'] not in self.tokens:
            return webob.Response(status=401)
        if req.headers['X-Auth-Token'] not in (self.tokens | {ALICE.auth_token}):
            return webob.Response(status=401)
        return answer if isinstance(answer, webob.Response) else webob.Response(status=answer, json={})

    moved = volume


JSON = [('Content-Type', 'application/json')]


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients may disconnect at any time."""


class Quiet(WSGIRequestHandler):
    def log_message(self, *about):
        pass


@pytest.fixture
def cloud():
    cloud = TinyCloud()
    server = Server(('127.0.0.1', 0), Quiet)
    server.set_app(cloud)
    cloud.url = f'http://127.0.0.1:{server.server_port}'
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield cloud
    cloud.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def service_with(cloud, tmp_path):
    """service_with(text): the service with this text added to its configuration; keyword arguments replace parts of
    it."""

    def make(more='', **changes):
        text = CONF.format(url=cloud.url, key=KEY) + more
        for old, new in changes.items():
            text = text.replace(old, new)
        (tmp_path / 'some.conf').write_text(text)
        conf = config.load([str(tmp_path / 'some.conf')], {('volume', 'backend'): 'cinder'})
        return NeighbourService(conf, 'Cinder', 'cinder', 'block-storage', 3)

    return make


@pytest.fixture
def service(service_with):
    return service_with()


def ask(service, context, path='/volumes', refusals=None):
    with service.translating_errors(context, refusals):
        return service.adapter(context).get(path)


@pytest.mark.parametrize('text', ['detail', '..', f'{OWN}?a=b', f'{OWN}%2Fmetadata%2Fa', f'{OWN}#'])
def test_nothing_but_an_id_stands_in_the_path_of_a_url(cloud, service, text):
    volumes = CinderVolumes(service.conf)
    cloud.answers['detail'] = webob.Response(json={'volumes': [], 'snapshots': []})
    for call, error in ((volumes.get, VolumeNotFound), (volumes.get_snapshot, SnapshotNotFound)):
        with pytest.raises(error):
            call(ALICE, text)
    assert not cloud.asked
    for call, error in ((volumes.delete, VolumeNotFound), (volumes.delete_snapshot, SnapshotNotFound)):
        with pytest.raises(error):
            call(ALICE, text)
    assert {req.method for req in cloud.asked} == {'GET'}


# ------------------------------------------------------------------ credentials


def test_callers_are_asked_for_with_their_token_and_one_of_this_service(cloud, service):
    ask(service, ALICE)
    [req] = cloud.asked
    assert req.path == '/volume/v3/apples/volumes'
    assert req.headers['X-Auth-Token'] == ALICE.auth_token
    assert req.headers['X-Service-Token'] in cloud.tokens
    assert req.headers['X-Openstack-Request-Id'] == 'req-1'


def test_this_service_asks_as_an_administrator_that_is_a_service(cloud, service):
    ask(service, ALICE.elevated())
    [req] = cloud.asked
    assert req.headers['X-Auth-Token'] in cloud.tokens
    assert req.headers['X-Service-Token'] in cloud.tokens


def test_the_id_that_a_client_gave_to_all_that_it_does_goes_on(cloud, service):
    ask(service, Context(auth_token=ALICE.auth_token, request_id='req-1', global_request_id='req-2'))
    assert cloud.asked[0].headers['X-Openstack-Request-Id'] == 'req-2'


def test_a_token_that_was_kept_is_the_callers(cloud, service):
    sealed = Cipher([KEY]).encrypt(ALICE.auth_token)
    ask(service, Context(project_id='apples', sealed_token=sealed))
    [req] = cloud.asked
    assert (req.path, req.headers['X-Auth-Token']) == ('/volume/v3/apples/volumes', ALICE.auth_token)


def test_this_service_asks_as_itself(cloud, service):
    ask(service, ALICE.elevated())
    [req] = cloud.asked
    assert req.path == f'/volume/v3/{OWN}/volumes'
    assert req.headers['X-Auth-Token'] in cloud.tokens


def test_it_logs_in_once_for_all_services(cloud, service):
    ask(service, ALICE)
    ask(service, ALICE.elevated())
    other = NeighbourService(service.conf, 'Glance', 'glance', 'block-storage', 3)
    ask(other, ALICE)
    ask(other, ALICE.elevated())
    assert cloud.logins == 1


def test_a_caller_without_a_token_is_not_taken_for_this_service(cloud, service):
    with pytest.raises(NoToken):
        ask(service, Context(user_id='alice', project_id='apples', roles=frozenset({'admin'})))
    assert cloud.asked == [] and cloud.logins == 0


@pytest.mark.parametrize('context', [ALICE, ALICE.elevated()], ids=['caller', 'itself'])
def test_an_own_token_is_used_until_it_is_refused(cloud, service, context):
    for _ in range(3):
        ask(service, context)
    logins = cloud.logins
    cloud.tokens.clear()
    for _ in range(3):
        ask(service, context)
    assert len(cloud.asked) == 7
    assert cloud.logins > logins
    assert len(cloud.tokens) <= 2


def test_an_endpoint_is_looked_up_once_for_each_own_token(cloud, service, monkeypatch):
    login = service.own_auth.delegate
    look, looked = login.get_endpoint_data, []
    monkeypatch.setattr(login, 'get_endpoint_data', lambda *args, **kwargs: looked.append(1) or look(*args, **kwargs))
    for context in (ALICE, ALICE.elevated(), replace(ALICE, project_id='pears')):
        ask(service, context)
    assert len(looked) == 1
    assert [asked.path.split('/')[3] for asked in cloud.asked] == ['apples', OWN, 'pears']
    cloud.volumes_at = 'moved'
    cloud.tokens.clear()
    # Refused, and repeated with a new token.
    ask(service, ALICE.elevated())
    cloud.asked.clear()
    ask(service, ALICE)
    assert [asked.path for asked in cloud.asked] == ['/moved/v3/apples/volumes']
    assert len(looked) == 2


def test_a_refused_token_of_a_caller_is_an_error_of_the_caller(cloud, service):
    with pytest.raises(NotAuthenticated):
        ask(service, Context(project_id='apples', auth_token='expired'))


def test_a_service_that_is_somebody_else_at_a_neighbour(cloud, service_with):
    with pytest.raises(Refused, match="Keystone answered 401: this service's own user was refused"):
        more = 'auth_type = password\nauth_url = {}/identity/v3\nusername = other\npassword = wrong\n'
        ask(service_with(more.format(cloud.url)), ALICE.elevated())


# ------------------------------------------------------------------ outages


@pytest.mark.parametrize('status', [502, 503, 504])
@pytest.mark.parametrize('context', [ALICE, ALICE.elevated()], ids=['caller', 'itself'])
def test_a_neighbour_that_says_so_is_away(cloud, service, status, context):
    cloud.answers['volumes'] = status
    with pytest.raises(NeighbourAway, match=r'^Cinder is currently unavailable\.$'):
        ask(service, context)


def test_a_neighbour_that_does_not_answer_is_away(cloud, service):
    cloud.answers['volumes'] = 'hang'
    with pytest.raises(NeighbourAway, match='^Cinder'):
        ask(service, ALICE)


def test_a_neighbour_that_refuses_connections_is_away(service_with):
    with pytest.raises(NeighbourAway, match='^Cinder'):
        ask(service_with('endpoint_override = http://127.0.0.1:9/v3/%(project_id)s\n'), ALICE)


@pytest.mark.parametrize('context', [ALICE, ALICE.elevated()], ids=['caller', 'itself'])
def test_nothing_is_not_found_while_nobody_says_where_it_is(cloud, service, context):
    """A Glance that is away for a moment has not lost its images."""
    images = GlanceImages(service.conf)
    cloud.answers['image'] = 503
    with pytest.raises(NeighbourAway, match='^Glance'):
        images.get(context, str(uuid.uuid4()))
    del cloud.answers['image']
    with pytest.raises(ImageNotFound):
        images.get(context, str(uuid.uuid4()))


def test_a_neighbour_that_is_not_in_the_catalog_is_away(cloud, service):
    cloud.catalog = False
    with pytest.raises(NeighbourAway, match='^Cinder'):
        ask(service, ALICE)


@pytest.mark.parametrize('status', [500, 502, 503])
def test_without_an_own_token_it_is_keystone_that_is_away(cloud, service, status):
    cloud.keystone = status
    with pytest.raises(NeighbourAway, match='^Keystone'):
        ask(service, ALICE)


def test_keystone_refuses_connections(service_with, cloud):
    with pytest.raises(NeighbourAway, match='^Keystone'):
        ask(service_with(**{cloud.url: 'http://127.0.0.1:9'}), ALICE)


def test_a_connection_that_ends_is_made_again_unless_something_was_to_be_made(cloud, service_with):
    proxy = Proxy('127.0.0.1', int(cloud.url.rpartition(':')[2]))
    cloud.url = f'http://127.0.0.1:{proxy.port}'
    service = service_with(**{'connect_retries = 0': 'connect_retries = 2'})
    ask(service, ALICE)
    proxy.cut_at('GET /volume', times=2)
    ask(service, ALICE)
    assert proxy.cuts == 0 and len(cloud.asked) == 2
    proxy.cut_at('POST /volume', times=2)
    with pytest.raises(NeighbourAway), service.translating_errors(ALICE):
        service.adapter(ALICE).post('/volumes', json={})
    assert proxy.cuts == 1
    proxy.close()


# ------------------------------------------------------------------ refusals


def test_a_foreseen_refusal_is_made_of_the_neighbours_own_words(cloud, service):
    cloud.answers['x'] = webob.Response(status=404, json={'itemNotFound': {'code': 404, 'message': 'No x.\nAt all.'}})
    with pytest.raises(VolumeNotFound, match=r'^No x\. At all\.$'):
        ask(service, ALICE, '/volumes/x', {404: VolumeNotFound})


def test_of_a_page_there_are_only_its_words(cloud, service):
    cloud.answers['x'] = webob.Response(status=409, text=PAGE, content_type='text/html', charset='UTF-8')
    with pytest.raises(Refused, match=r'^Cinder answered 409: In "use"\.$') as caught:
        ask(service, ALICE, '/volumes/x')
    assert caught.value.status == 409


@pytest.mark.parametrize('pieces', [1, 50])
def test_data_that_is_refused_before_it_was_sent_is_too_large(service, pieces):
    images = GlanceImages(service.conf)
    with pytest.raises(TooLarge, match=r'^In "use"\.$'):
        images.upload(ALICE, str(uuid.uuid4()), (bytes(2**20) for _ in range(pieces)))


def test_a_caller_that_may_not_is_told_so(cloud, service):
    cloud.answers['volumes'] = webob.Response(status=403, json={'forbidden': {'message': 'Not you.'}})
    with pytest.raises(Forbidden, match=r'^Not you\.$'):
        ask(service, ALICE)


def test_that_this_service_may_not_is_no_error_of_the_caller(cloud, service):
    cloud.answers['volumes'] = webob.Response(status=403, json={'forbidden': {'message': 'Not you.'}})
    with pytest.raises(Refused, match='Cinder answered 403: Not you'):
        ask(service, ALICE.elevated())


def test_own_errors_and_mistakes_stay_what_they_are(service):
    for error in (VolumeNotFound(id='x'), KeyError('x')):
        with pytest.raises(type(error)), service.translating_errors(ALICE):
            raise error


# ------------------------------------------------------------------ secrets


def test_no_secret_is_logged(cloud, service, caplog):
    caplog.set_level(logging.DEBUG)
    for name in list(logging.root.manager.loggerDict):
        caplog.set_level(logging.DEBUG, name)
    cloud.answers['broken'] = 500
    ask(service, ALICE)
    ask(service, ALICE.elevated())
    for path in ('/volumes', '/broken'):
        with pytest.raises((Refused, NotAuthenticated)):
            ask(service, Context(project_id='apples', auth_token='refused-token'), path, {500: Refused})
    cloud.tokens.clear()
    ask(service, ALICE)
    service.conf.log_opt_values(logging.getLogger(__name__), logging.DEBUG)
    assert '/volume/v3/apples/volumes' in caplog.text and 'task_token_key' in caplog.text
    secrets = {PASSWORD, KEY, ALICE.auth_token, 'refused-token', *cloud.tokens, *every_token(cloud)}
    assert [secret for secret in secrets if secret in caplog.text] == []


def every_token(cloud):
    found = Counter(req.headers.get(name) for req in cloud.asked for name in ('X-Auth-Token', 'X-Service-Token'))
    return {token for token in found if token}


def test_tokens_are_sealed_with_the_first_key_and_opened_with_any():
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    sealed = Cipher([old]).encrypt('token')
    assert 'token' not in sealed
    assert Cipher([new, old]).decrypt(sealed) == Cipher([old]).decrypt(sealed) == 'token'
    with pytest.raises(UnreadableToken):
        Cipher([old]).decrypt(Cipher([new, old]).encrypt('token'))


@pytest.mark.parametrize('sealed', ['', 'junk', 'Ünïcode'])
def test_what_was_not_sealed_is_not_opened(sealed):
    with pytest.raises(UnreadableToken):
        Cipher([KEY]).decrypt(sealed)


def test_without_a_key_nothing_is_kept():
    assert Cipher().encrypt('token') is None and Cipher([KEY]).encrypt(None) is None
    assert Cipher().decrypt(Cipher([KEY]).encrypt('token')) is None and Cipher([KEY]).decrypt(None) is None


def test_a_key_must_be_one():
    with pytest.raises(ValueError):
        Cipher(['short'])
