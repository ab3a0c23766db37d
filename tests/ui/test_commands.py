"""The commands that the page shows are valid for the client, and do what the page says."""

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points

from computeapi import api
from computeapi.ui.commands import COMMANDS

OPERATIONS = {str(operation): operation for operation in api.operations()}
GROUPS = ('openstack.compute.v2', 'openstack.common')
PARSERS = {each.name.replace('_', ' '): each for group in GROUPS for each in entry_points(group=group)}
"""The client's entry points for commands."""


SCRIPT = """
import json, sys
from importlib.metadata import entry_points
for group, name, command, arguments in json.load(sys.stdin):
    [found] = entry_points(group=group, name=name)
    parser = found.load()(None, None).get_parser(command)
    print(command, vars(parser.parse_args(arguments)))
"""


def test_the_client_takes_them():
    """In a process of its own, because the client's warnings are not ours."""
    asked = []
    for name, words in COMMANDS.items():
        shown = re.findall(r'{(\w+)}', OPERATIONS[name].path)
        assert re.findall(r'{(\w+)}', words) == shown
        command = max((each for each in PARSERS if f'{words} '.startswith(f'{each} ')), key=len)
        arguments = words[len(command) :].format(**dict.fromkeys(shown, 'some-id')).split()
        asked.append([PARSERS[command].group, PARSERS[command].name, command, arguments])
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', SCRIPT], input=json.dumps(asked), capture_output=True, text=True
    )
    assert done.returncode == 0 and len(done.stdout.splitlines()) == len(COMMANDS), done.stderr
