"""The control API: its token, its snapshots, its description, and the shell commands."""

import json

import pytest
from openapi_spec_validator import validate

from computeapi import cli
from computeapi.errors import Invalid
from computeapi.kit import shell
from computeapi.kit.control import table
from computeapi.kit.variables import TOKEN_VARIABLE, URL_VARIABLE


def snapshots(http):
    return [each['name'] for each in http.control('GET', '/snapshots').json()['snapshots']]


@pytest.mark.parametrize('token', ['', 'wrong', 'tökén'.encode()])
def test_it_is_for_who_has_the_token(http, token):
    http.boot()
    for method, path in (('POST', '/reset'), ('GET', '/snapshots'), ('DELETE', '/snapshots/initial')):
        assert http.control(method, path, token=token).status_code == 401
    assert http.names() == ['web']


def test_snapshots_come_and_go(http):
    assert snapshots(http) == ['initial']
    http.boot('kept')
    assert http.control('POST', '/snapshots', {'name': 'päck/../1'}).status_code == 201
    assert http.control('POST', '/snapshots', {'name': 'päck/../1'}).status_code == 409
    http.boot('lost')
    assert http.control('POST', '/snapshots/p%C3%A4ck%2F..%2F1/restore').status_code in (204, 404)
    assert http.control('POST', '/snapshots', {'name': 'one'}).status_code == 201
    assert http.control('POST', '/snapshots/one/restore').status_code == 204
    assert http.control('DELETE', '/snapshots/one').status_code == 204
    assert http.control('DELETE', '/snapshots/one').status_code == 404
    assert http.control('POST', '/snapshots/one/restore').status_code == 404
    assert http.control('DELETE', '/snapshots/initial').status_code == 409
    assert http.control('POST', '/reset').status_code == 204
    assert snapshots(http) == ['initial']


@pytest.mark.parametrize('body', [{}, {'name': ''}, {'name': 1}, {'name': 'x' * 256}, {'name': 'x', 'more': 1}, []])
def test_what_does_not_fit_is_refused(http, body):
    assert http.control('POST', '/snapshots', body).status_code == 400
    assert snapshots(http) == ['initial']


def test_the_longest_name_is_one(http):
    assert http.control('POST', '/snapshots', {'name': 'ü' * 255}).status_code == 201


def test_it_describes_itself_to_anybody(http):
    answer = http.control('GET', '/openapi.json', token='')
    document = answer.json()
    validate(document)
    assert set(document['paths']) >= {'/reset', '/snapshots', '/snapshots/{name}/restore'}
    assert document['components']['securitySchemes']['token']['name'] == 'X-Control-Token'


def test_there_is_nothing_else(http):
    assert http.control('GET', '/nothing').status_code == 404
    assert http.control('PUT', '/snapshots').status_code == 404


# ------------------------------------------------------------------ computeapi control


@pytest.fixture
def control(cloud, monkeypatch, capsys):
    """control('take-snapshot', 'one'): the output of the command."""
    for name in (URL_VARIABLE, TOKEN_VARIABLE):
        monkeypatch.setenv(name, cloud.environ[name])

    def run(*arguments):
        shell.run(arguments)
        return capsys.readouterr().out

    return run


def test_each_operation_is_a_command_of_its_own():
    names = [operation['name'] for operation in shell.operations()]
    assert len(set(names)) == len(names)


def test_the_file_of_the_table_is_up_to_date():
    # python -m computeapi.kit.control.table > computeapi/kit/control.json
    assert shell.TABLE.read_text() == table.text()


def test_commands_do_what_the_operations_do(http, control):
    assert json.loads(control('take-snapshot', 'one')) == {'name': 'one'}
    http.boot()
    assert control('restore-snapshot', 'one') == ''
    assert http.names() == []
    with pytest.raises(shell.ControlRefused, match='409: Snapshot one already exists'):
        control('take-snapshot', 'one')


def test_what_an_operation_is_given_may_have_any_name(http, control):
    rule = json.loads(control('add-fault', '--operation', 'POST /servers', '--status', '503', '--body', '<html>'))
    assert (rule['operation'], rule['status'], rule['body']) == ('POST /servers', 503, '<html>')
    rule = json.loads(control('add-fault', '--path', '*', '--status', '500', '--body', '{"a": 1}'))
    assert rule['body'] == {'a': 1}
    assert json.loads(control('add-plan', '--state', 'BUILD', '--until-told', 'true'))['until_told'] is True
    control('clear-faults')
    server = http.boot()
    control('release-server')
    assert http.get(f'/v2.1/servers/{server}').json()['server']['status'] == 'ACTIVE'


def test_commands_need_to_know_which_cloud(control, monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE)
    with pytest.raises(Invalid, match=TOKEN_VARIABLE):
        control('reset')
    with pytest.raises(SystemExit):
        control('explode')


def test_nobody_at_the_url_is_told(control):
    with pytest.raises(shell.ControlRefused, match='Nothing answers at http://127.0.0.1:1/control'):
        control('--url', 'http://127.0.0.1:1/control', 'reset')


def test_what_is_no_document_is_told(control, capsys):
    for text in ('cloud.yaml', '{'):
        with pytest.raises(SystemExit):
            control('load', text)
        assert f'{text} is neither JSON nor @FILE' in capsys.readouterr().err


def test_what_is_neither_true_nor_false_is_told(control, capsys):
    with pytest.raises(SystemExit):
        control('switch-hints', 'yes')
    assert 'ON: yes is neither true nor false' in capsys.readouterr().err


def test_which_cloud_may_be_said_first(cloud, capsys):
    which = ['--url', cloud.environ[URL_VARIABLE], '--token', cloud.control_token]
    assert cli.main(['control', *which, 'list-snapshots']) == 0
    assert json.loads(capsys.readouterr().out) == {'snapshots': [{'name': 'initial'}]}


def test_help_says_what_a_command_asks(monkeypatch, capsys):
    monkeypatch.setenv('COLUMNS', '200')
    with pytest.raises(SystemExit, match='0'):
        cli.main(['control', '--help'])
    printed = capsys.readouterr().out
    for operation in shell.operations():
        assert f'({operation["method"]} {operation["path"]})' in printed
