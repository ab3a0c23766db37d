"""What request schemas accept and refuse in tricky cases: the same as observed in Nova."""

import pytest

from computeapi import api
from computeapi.errors import Invalid
from computeapi.versions import APIVersionRequest

ID = '12345678-1234-4234-8234-123456789abc'
LEGACY = None


def new(**kwargs):
    return {'server': {'name': 'a', 'flavorRef': '1', 'networks': 'none', **kwargs}}


def hinted(**hints):
    return {'os:scheduler_hints': hints} | new()


SERVER, FLAVOR, KEYPAIR = 'POST /servers', 'PUT /flavors/{id}', 'POST /os-keypairs'
BODIES = [
    # Names consist of printable characters in Unicode's basic multilingual plane, which has no emoji.
    (SERVER, '2.104', new(name='é 日本'), True),
    (SERVER, '2.104', new(name='😀'), False),
    (SERVER, '2.104', new(name='a\u200b'), False),
    (SERVER, LEGACY, {'server': {'name': ' a ', 'flavorRef': '1'}}, True),
    (SERVER, LEGACY, {'server': {'name': '😀', 'flavorRef': '1'}}, False),
    (SERVER, '2.104', new(security_groups=[{'name': 'a b'}]), True),
    (SERVER, '2.104', new(security_groups=[{'name': ' a'}]), False),
    (SERVER, LEGACY, {'server': {'name': 'a', 'flavorRef': '1', 'security_groups': [{'name': ' a'}]}}, True),
    (SERVER, '2.104', hinted(target_cell='a'), True),
    (SERVER, '2.104', hinted(target_cell=' a'), False),
    (SERVER, LEGACY, {'server': {'name': 'a', 'flavorRef': '1'}, 'os:scheduler_hints': {'target_cell': ' a'}}, False),
    (KEYPAIR, LEGACY, {'keypair': {'name': 'é/@'}}, True),
    (KEYPAIR, '2.1', {'keypair': {'name': 'é/@'}}, False),
    (FLAVOR, '2.55', {'flavor': {'description': ' a é '}}, True),
    (FLAVOR, '2.55', {'flavor': {'description': None}}, True),
    *((FLAVOR, '2.55', {'flavor': {'description': text}}, False) for text in ('😀', 'a\u200b', 'a\u2028', '\x7f')),
    # A UUID may be in upper case, but the prefix urn:uuid: may not.
    *(
        (SERVER, '2.104', new(imageRef=text), True)
        for text in (ID, ID.upper(), ID.replace('-', ''), f'{{{ID}}}', f'urn:uuid:{ID}')
    ),
    *((SERVER, '2.104', new(imageRef=text), False) for text in (f'URN:UUID:{ID.upper()}', f' {ID}', ID[1:])),
    # Leading zeros are digits.
    ('POST /servers/{server_id}/action {createBackup}', '2.1', {'rotation': '0' * 256}, True),
    ('POST /servers/{server_id}/action {os-getConsoleOutput}', '2.1', {'length': '9' * 256}, True),
]
MOMENTS = {
    '2020': True,
    '2020-01': True,
    '20200101T000000Z': True,
    '2020-01-01 00:00:00.1+01:00': True,
    '2020-01-01T00:00:00 Z': False,
    '2020-W01-1': False,
    '2020-13-01': False,
}
QUERIES = [
    *(('GET /servers', '2.66', {'changes-since': [text]}, taken) for text, taken in MOMENTS.items()),
    *(('GET /os-migrations', '2.66', {'changes-before': [text]}, taken) for text, taken in MOMENTS.items()),
    ('GET /servers', '2.1', {'limit': ['0' * 256]}, True),
    ('GET /os-server-groups', '2.1', {'offset': ['9' * 256]}, True),
    ('GET /os-quota-sets/{id}', '2.1', {'user_id': ['a' * 256]}, True),
]


def operation_of(name, version):
    """The operation at a version; None: at /v2."""
    at = APIVersionRequest.parse(version or '2.1')
    return at, next(each for each in api.operations() if str(each) == name and each.min <= at <= each.max)


def taken(check, given, at, legacy):
    try:
        check(given, at, legacy)
    except Invalid:
        return False
    return True


@pytest.mark.parametrize(('name', 'version', 'body', 'expected'), BODIES)
def test_bodies(name, version, body, expected):
    at, operation = operation_of(name, version)
    if operation.action:
        needed = {'createBackup': {'name': 'a', 'backup_type': 'daily'}}.get(operation.action, {})
        body = {operation.action: needed | body}
    assert taken(operation.body_validator.check, body, at, version is LEGACY) == expected


@pytest.mark.parametrize(('name', 'version', 'query', 'expected'), QUERIES)
def test_queries(name, version, query, expected):
    at, operation = operation_of(name, version)
    assert taken(operation.query_validator.check, query, at, version is LEGACY) == expected
