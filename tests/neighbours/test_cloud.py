"""The helpers of suites that run against a real cloud."""

import time
from dataclasses import dataclass

import pytest

from computeapi.context import Context
from tests.backends.implementations import ADMIN, ALICE, BOB, READER, SERVICE
from tests.neighbours import cloud


@dataclass(frozen=True)
class Note:
    owner: str
    author: str
    tags: tuple = ()


class Notes:
    """A backend that returns its arguments."""

    def asked(self, context, *words, **kwargs):
        return context, words, kwargs

    def note(self, context):
        return [Note(context.project_id, context.user_id, (context.project_name, 'nova'))]


@pytest.fixture
def running():
    return cloud.running()


@pytest.mark.parametrize('caller', [ADMIN, ALICE, READER, SERVICE, BOB])
def test_callers_have_tokens_with_their_roles(running, caller):
    real = running.context(caller)
    assert real.auth_token and caller.roles <= real.roles and real.is_admin == caller.is_admin
    assert (running.called(real.project_id), running.called(real.user_id)) == (caller.project_id, caller.user_id)
    assert running.context(caller) == running.context(real) == real


def test_the_service_and_nobody(running):
    alice = running.context(ALICE)
    itself = running.context(ALICE.elevated())
    assert (itself.auth_token, itself.project_id, itself.is_admin) == (None, alice.project_id, True)
    ghost = running.context(Context(user_id='ghost'))
    assert (ghost.project_id, ghost.roles) == (None, frozenset()) and ghost.auth_token


def test_suites_go_on_speaking_of_apples(running):
    notes = running.translated(Notes())
    apples = running.project_id('apples')
    assert apples != 'apples'
    found, words, facts = Notes().asked(*running.real((ALICE, 'apples', 'nova')), **running.real({'in': ['apples']}))
    assert (found.project_id, words, facts) == (apples, (apples, 'nova'), {'in': [apples]})
    assert notes.note(ALICE) == [Note('apples', 'alice', ('apples', 'nova'))]


def test_nothing_is_left(running):
    neutron, cinder, glance = (running.service(kind, ALICE) for kind in ('network', 'block-storage', 'image'))
    network = neutron.post('/networks', json={'network': {'name': 'hers'}}).json()['network']['id']
    subnet = {'network_id': network, 'cidr': '10.9.0.0/24', 'ip_version': 4}
    subnet_id = neutron.post('/subnets', json={'subnet': subnet}).json()['subnet']['id']
    router = neutron.post('/routers', json={'router': {}}).json()['router']['id']
    neutron.put(f'/routers/{router}/add_router_interface', json={'subnet_id': subnet_id})
    neutron.post('/ports', json={'port': {'network_id': network, 'device_id': 'server'}})
    volume = cinder.post('/volumes', json={'volume': {'size': 1}}).json()['volume']['id']
    while cinder.get(f'/volumes/{volume}').json()['volume']['status'] != 'available':
        time.sleep(0.05)
    held = {'volume_uuid': volume, 'instance_uuid': volume}
    cinder.post('/attachments', json={'attachment': held}, microversion='3.44')
    glance.post('/images', json={'name': 'hers', 'protected': True})
    running.clean()
    left = [
        neutron.get(f'/networks?project_id={running.project_id("apples")}').json()['networks'],
        neutron.get('/routers').json()['routers'],
        cinder.get('/volumes').json()['volumes'],
        glance.get('/images?visibility=private').json()['images'],
    ]
    assert left == [[], [], [], []]


def test_networks_are_there_or_not(running):
    def seen():
        return [network['name'] for network in running.service('network', BOB).get('/networks').json()['networks']]

    running.clean('network')
    running.topology.show()
    assert sorted(seen()) == ['private', 'public']
    running.topology.show(shared=False)
    assert 'private' not in seen()
