"""Hints, compared with the contract for each version; their place in responses, the log and the control API."""

import argparse
import csv
import logging
import re
from pathlib import Path

import pytest

from computeapi.kit.hints import HINT_HEADER
from computeapi.kit.hints.advice import MAX_HINTS, Question, advise
from computeapi.kit.options import add_serve, kit_of
from computeapi.versions import HISTORY, MAX, APIVersionRequest, before

CONTRACT = Path(__file__).parent.parent / 'contract'


def rows(name):
    with (CONTRACT / name).open() as file:
        return [row for row in csv.DictReader(file) if not row['operation'].startswith('*')]


def version_header(version):
    return {'OpenStack-API-Version': f'compute {version}'} if version else {'OpenStack-API-Version': 'volume 3.0'}


class Wanted:
    """A request for an operation of the contract, for a resource that does not exist."""

    def __init__(self, operation, path=''):
        self.method, rest = operation.split(' ', 1)
        self.path, _, action = re.sub(r'/{(\w+)}', '/missing', rest).partition(' ')
        self.body = body_with(path.split('/')[1:]) if path else {action.strip('{}'): {}} if action else None


def body_with(parts):
    """A body with a field at the end of these names; names with [] are lists."""
    if not parts:
        return 'x'
    name, *rest = parts
    return {name[:-2]: [body_with(rest)]} if name.endswith('[]') else {name: body_with(rest)}


def fields():
    """(version, operation, body or query, + or -, field) according to the contract."""
    for row in rows('changes.csv'):
        if row['what'] in ('body', 'query') and row['fields'] != '*':
            for field in row['fields'].split():
                yield row['version'], row['operation'], row['what'], field[0], field[1:]


def expected(version, sign):
    """The text of a hint for a name that was added or removed at that version."""
    if sign == '+':
        return re.compile(rf'from {re.escape(version)} (on|to )|in {re.escape(version)} only')
    return re.compile(rf'(until|to) {re.escape(before(version))}\b|in {re.escape(before(version))} only')


@pytest.mark.parametrize(('version', 'operation', 'what', 'sign', 'field'), list(fields()))
def test_of_each_field_that_came_or_went_the_hint_names_the_version(http, version, operation, what, sign, field):
    asked = before(version) if sign == '+' else version
    wanted = Wanted(operation, field if what == 'body' else '')
    query = {field[1:]: '1'} if what == 'query' else None
    answer = http.request(
        wanted.method, f'/v2.1{wanted.path}', wanted.body, params=query, headers=version_header(asked)
    )
    name = re.split(r'[/.]', field)[-1]
    [hint] = [
        each
        for each in answer.headers[HINT_HEADER].split(', ')
        if re.match(rf"'([^']*\.)?{name}' (is supported|was ignored: it is supported) ", each)
    ]
    assert expected(version, sign).search(hint), hint
    assert hint.endswith(f'; this request used {asked}')
    assert answer.status_code in (200, 202, 400, 404)


def lifetimes():
    for row in rows('operations.csv'):
        if row['min'] != '2.1':
            yield row['operation'], before(row['min']), f'from {row["min"]} '
        if row['max']:
            after = str(APIVersionRequest.parse(row['max']).next)
            yield row['operation'], after, f'{row["max"]};'


@pytest.mark.parametrize(('operation', 'asked', 'words'), list(lifetimes()))
def test_of_each_operation_that_came_or_went_the_hint_names_the_version(http, operation, asked, words):
    wanted = Wanted(operation)
    answer = http.request(wanted.method, f'/v2.1{wanted.path}', wanted.body, headers=version_header(asked))
    plain = re.sub('[{}]', '', operation)
    hint = re.sub('[{}]', '', answer.headers[HINT_HEADER])
    assert answer.status_code == 404
    assert re.sub(r'/\w*id\b', '/id', hint).startswith(re.sub(r'/\w*id\b', '/id', f'{plain} is supported '))
    assert words in hint.replace(' to ', ' until ') or words in hint
    assert hint.endswith(f'; this request used {asked}')


def test_the_answer_is_as_it_would_be_without(http, cloud):
    body = {'server': {'name': 'web', 'flavorRef': '1', 'tags': ['a'], 'nonsense': 1}}
    told = http.post('/v2.1/servers', body, headers=version_header('2.1'))
    cloud.hints.on = False
    untold = http.post('/v2.1/servers', body, headers=version_header('2.1'))
    assert told.status_code == untold.status_code == 400
    assert told.content == untold.content
    assert told.headers[HINT_HEADER] == "'tags' is supported from 2.52 on; this request used 2.1"
    ours = {HINT_HEADER.lower(), 'x-openstack-request-id', 'x-compute-request-id', 'date'}
    assert {k.lower() for k in told.headers} - ours == {k.lower() for k in untold.headers} - ours
    assert HINT_HEADER not in untold.headers


def test_what_was_lost_by_mistake_is_told_as_it_was(http):
    body = {'server': {'name': 'web', 'flavorRef': '1', 'networks': [{'uuid': 'x'}, {'tag': 'x'}]}}
    hint = http.post('/v2.1/servers', body, headers=version_header('2.40')).headers[HINT_HEADER]
    assert hint == ("'networks[1].tag' is supported from 2.32 to 2.36 and from 2.42 on; this request used 2.40")


def test_who_names_no_version_is_told_which_that_is(http):
    hint = http.get('/v2.1/servers/missing/tags', headers=version_header(None)).headers[HINT_HEADER]
    assert (
        hint == 'GET /servers/{server_id}/tags is supported from 2.26 on; this request named no version and so used 2.1'
    )


def test_parameters_that_were_ignored_are_told(http):
    answer = http.get('/v2.1/servers?locked=true&colour=red&name=web', headers=version_header('2.1'))
    assert answer.status_code == 200
    assert answer.headers[HINT_HEADER].split(', ') == [
        "'locked' was ignored: it is supported from 2.73 on; this request used 2.1",
        "'colour' was ignored: it is supported in no version; this request used 2.1",
    ]
    refused = http.get('/v2.1/servers?locked=true&colour=red', headers=version_header('2.102'))
    assert refused.status_code == 400
    assert HINT_HEADER not in refused.headers


def test_what_an_action_was_told_in_vain_is_told(http):
    server = http.boot()
    answer = http.post(
        f'/v2.1/servers/{server}/action', {'lock': {'locked_reason': 'x'}}, headers=version_header('2.72')
    )
    assert answer.status_code == 202
    assert answer.headers[HINT_HEADER] == (
        "'locked_reason' was ignored: it is supported from 2.73 on; this request used 2.72"
    )


def test_what_v2_dropped_is_told(http):
    name = {'server': {'name': 'new', 'description': 'new', 'nonsense': 1}}
    answer = http.request('PUT', f'/v2/servers/{http.boot()}', name)
    assert answer.status_code == 200
    assert answer.headers[HINT_HEADER] == (
        "'description' was ignored: it is supported from 2.19 on; /v2 has no microversions, "
        "'nonsense' was ignored: it is supported in no version; /v2 has no microversions"
    )


@pytest.mark.parametrize('path', ['/servers/missing', '/nothing', '/servers/missing/ips/%2e', '/flavors/missing'])
@pytest.mark.parametrize('version', ['2.1', str(MAX)])
def test_what_other_versions_know_no_better_has_no_hint(http, path, version):
    answer = http.get(f'/v2.1{path}', headers=version_header(version))
    assert answer.status_code == 404
    assert HINT_HEADER not in answer.headers


def test_other_services_and_good_requests_have_none(http):
    answers = [
        http.get('/v2.1/servers?limit=1', headers=version_header('2.1')),
        http.get('/volume/v3/missing/volumes?tags=1'),
        http.get('/v2.1/servers', headers=version_header('9.9')),
        http.get('/?tags=1'),
    ]
    assert [each for each in answers if HINT_HEADER in each.headers] == []


def test_names_that_are_no_text_of_headers(http):
    names = ['a\r\nX-Evil: 1', 'ü', 'x' * 5000, *map(str, range(50))]
    answer = http.get('/v2.1/servers', params=dict.fromkeys(names, '1'), headers=version_header('2.1'))
    assert answer.status_code == 200
    assert 'X-Evil' not in answer.headers
    hints = answer.headers[HINT_HEADER].split('2.1, ')
    for hint, name in zip(hints, [r'a\r\nX-Evil: 1', r'\xfc', 'x' * 100 + '...'], strict=False):
        assert hint.startswith(f"'{name}' was ignored: ")
    assert len(hints) == MAX_HINTS
    assert len(answer.headers[HINT_HEADER]) < 200 * MAX_HINTS


def test_the_log_has_each_once_and_the_control_api_how_often(http, cloud, caplog, logged):
    with caplog.at_level(logging.WARNING, 'computeapi.kit.hints'):
        for _ in range(3):
            http.get('/v2.1/servers/missing/tags', headers=version_header('2.25'))
    text = 'GET /servers/{server_id}/tags is supported from 2.26 on; this request used 2.25'
    assert [each.message for each in logged()] == [f'GET /servers/{{server_id}}/tags: {text}']
    [hint] = http.control('GET', '/hints').json()['hints']
    assert hint == {'operation': 'GET /servers/{server_id}/tags', 'text': text, 'times': 3}
    assert http.control('PUT', '/hints', {'on': False}).json() == {'on': False}
    assert http.control('GET', '/hints').json()['on'] is False
    assert HINT_HEADER not in http.get('/v2.1/servers/missing/tags', headers=version_header('2.25')).headers
    cloud.reset()
    assert cloud.hints.on
    assert cloud.hints.given == []


@pytest.mark.parametrize('version', HISTORY)
def test_any_body_can_be_looked_at(version):
    for body in (None, [], 'x', 1, {}, {'server': []}, {'server': {'networks': 'none', 'tags': {'a': 1}}}):
        question = Question('POST', '/servers', APIVersionRequest.parse(version), True, False, {}, body, True)
        for hint in advise(question).hints:
            assert hint.startswith("'tags' is supported from 2.52 on")
            assert APIVersionRequest.parse(version) < (2, 52)


@pytest.mark.parametrize('asked', [None, True])
def test_serve_gives_them_if_it_is_asked_to(asked):
    parser = argparse.ArgumentParser()
    add_serve(parser)
    options = parser.parse_args(['--control-token', 'secret'], argparse.Namespace(in_memory=True))
    options.hints = asked
    with kit_of(options) as kit:
        kit.tools.hints.clear()
        assert kit.tools.hints.on is bool(asked)
