"""Cinder v3 on the built-in volumes, with callers whose tokens are their names."""

import pytest

from computeapi.backends.image.local import LocalImages
from computeapi.backends.volume.local import LocalVolumes
from computeapi.context import Context
from computeapi.standalone.volume import cinder
from tests.standalone.callers import CALLERS, answer_of, authenticating

FAULTS = {
    400: 'badRequest',
    401: 'unauthorized',
    403: 'forbidden',
    404: 'itemNotFound',
    409: 'conflictingRequest',
    413: 'overLimit',
}

authenticate = authenticating(nova=Context(user_id='nova', project_id='apples', roles=frozenset({'service'})))


@pytest.fixture
def images(store, tmp_path):
    return LocalImages(store, tmp_path / 'images')


@pytest.fixture
def disks():
    """The volumes in use by servers, according to compute: pairs of a volume ID and a server ID."""
    return set()


@pytest.fixture
def app(store, images, disks):
    types = {'fake': {}, 'multiattach': {'multiattach': '<is> True'}}
    volumes = LocalVolumes(store, images, types=types, used=lambda *pair: pair in disks)
    volumes.populate()
    return cinder(volumes, authenticate)


@pytest.fixture
def ask(app):
    """ask('POST /v3/volumes', {...}, by='alice', version='3.27') -> the response, which must have the status
    `expect`."""

    def ask(request, json=None, *, by='alice', version='3.68', expect=200, **others):
        headers = {'OpenStack-API-Version': f'volume {version}'} if version else {}
        response = answer_of(app, request, json, by, expect, **{'headers': headers, **others})
        if expect in FAULTS:
            fault = response.json[FAULTS[expect]]
            assert fault['code'] == expect
            response.message = fault['message']
        return response

    return ask


@pytest.fixture
def create(ask):
    def create(by='alice', **document):
        return ask('POST /v3/volumes', {'volume': {'size': 1, **document}}, by=by, expect=202).json['volume']

    return create


@pytest.fixture
def act(ask):
    def act(volume, name, argument=None, **others):
        others = {'expect': 202, **others}
        return ask(f'POST /v3/volumes/{volume["id"]}/action', {name: argument}, **others)

    return act


@pytest.fixture
def status(ask):
    return lambda volume: ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['status']


@pytest.fixture
def alice():
    return CALLERS['alice']
