"""`computeapi explain policy` reports what an API would do."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from computeapi import cli

STOP = 'POST /servers/{id}/action os-stop'


@pytest.fixture
def explain(capsys, tmp_path):
    """explain(operation, *options) -> exit status, output, and error output."""

    def explain(operation, *options, rules=''):
        (tmp_path / 'policy.yaml').write_text(rules)
        (tmp_path / 'conf').write_text(f'[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n')
        status = cli.main(['explain', '--config-file', f'{tmp_path}/conf', 'policy', *operation.split(), *options])
        return (status, *capsys.readouterr())

    return explain


def test_a_rule_is_resolved_into_what_it_refers_to(explain):
    status, text, _ = explain(STOP, '--role', 'member')
    assert status == 0
    assert (
        text
        == """\
Caller: roles member, reader, in a project. Target: the same project.

POST /servers/{server_id}/action os-stop, 2.1 to 2.104
    os_compute_api:servers:stop: allowed
        rule:project_member_or_admin: yes
            (rule:project_member_api or rule:context_is_admin): yes
                rule:project_member_api: yes
                    (role:member and project_id:%(project_id)s): yes
                        role:member: yes
                        project_id:%(project_id)s: yes
                rule:context_is_admin: no
                    role:admin: no
        (the default)
"""
    )


@pytest.mark.parametrize(
    ('options', 'status'),
    [
        (['--role', 'member'], 0),
        (['--role', 'Member', '--project-owner'], 0),
        (['--role', 'manager'], 0),
        (['--role', 'reader'], 1),
        (['--role', 'member', '--other-project'], 1),
        (['--role', 'admin', '--other-project'], 0),
        (['--role', 'service', '--role', 'reader'], 1),
        ([], 1),
    ],
)
def test_who_may_stop_a_server(explain, options, status):
    found, text, _ = explain(STOP, *options)
    assert found == status
    assert f'servers:stop: {"refused" if status else "allowed"}' in text


def test_a_token_of_the_system_is_none_for_a_project(explain):
    status, text, _ = explain(STOP, '--role', 'admin', '--system')
    assert 'with system scope. Target: another project.' in text
    assert ('but a system-scoped token is not valid for a project' in text) is bool(status)


def test_the_policy_file_counts(explain):
    rule = '"os_compute_api:servers:stop": "not role:reader or role:operator"'
    status, text, _ = explain(STOP, '--role', 'operator', '--other-project', rules=rule)
    assert status == 0
    assert 'not role:reader: yes\n' in text
    assert '(from the policy file)' in text
    assert explain(STOP, '--role', 'member', rules=rule)[0] == 1


class Decider(BaseHTTPRequestHandler):
    """A service that policy rules ask: its answer is the path."""

    def do_POST(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.removeprefix('/').encode())

    def log_message(self, *args):
        pass


def test_a_rule_may_ask_a_service(explain):
    with HTTPServer(('127.0.0.1', 0), Decider) as decider:
        threading.Thread(target=decider.serve_forever, args=[0.01], daemon=True).start()
        rule = f'"os_compute_api:servers:stop": "http://127.0.0.1:{decider.server_port}/%s"'
        assert explain(STOP, rules=rule % 'True')[0] == 0
        assert explain(STOP, '--role', 'admin', rules=rule % 'False')[0] == 1
        decider.shutdown()


def test_what_is_asked_where_it_matters_does_not_decide(explain):
    status, text, _ = explain('POST /servers', '--role', 'member')
    assert status == 0
    assert 'os_compute_api:servers:create: allowed\n' in text
    assert 'os_compute_api:servers:create:forced_host: refused, checked only if it applies' in text


def test_all_actions_of_a_path_and_operations_without_a_rule(explain):
    assert explain('POST /servers/{id}/action', '--role', 'reader')[1].count('\nPOST ') > 20
    assert 'No rule is checked.' in explain('GET /')[1]


def test_an_action_may_stand_alone(explain):
    status, text, _ = explain('os-stop', '--role', 'member')
    assert status == 0
    # The other is that of /os-volumes_boot.
    assert text.startswith(explain('POST /servers/{id}/action os-stop', '--role', 'member')[1])
    assert 'did you mean os-stop?' in explain('os-stopp')[2]


def test_an_operation_that_there_is_not(explain):
    status, _, error = explain('POST /nothing')
    assert status == 2
    assert 'There is no operation POST /nothing' in error
