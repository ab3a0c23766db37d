"""In which states a server can be asked for what, as the transitions of servers say it, for a browser.

    {
        'actions': {'os-stop': [{'states': ['active', 'error'], 'tasks': [null], 'lockable': true, 'launched': true,
                                 'hosted': true}]},
        'statuses': {'active': 'ACTIVE', ...},
    }

An action is possible when one of what is listed of it holds: `states` are vm_states and `tasks` task_states, null for
any (in `tasks`, a null among others is that nothing is under way).
"""

from collections.abc import Iterable
from typing import Any

from computeapi import api
from computeapi.compute.consoles import OFF
from computeapi.compute.servers import TRANSITIONS, machines
from computeapi.compute.tasks.transition import Requirement
from computeapi.states import STATUS

PATH = '/servers/{server_id}/action'
CONSOLE = 'console'
"""What is no action in the API, and beside them on the page."""
OTHERWISE_CALLED = {'os-migrateLive': 'live-migration'}
"""What the API calls an action in another way than it is recorded, but for the `os-` before some."""


def requirements() -> dict[str, Any]:
    """The document."""
    found = [each for each in (*TRANSITIONS, machines.CHANGE_PASSWORD) if is_asked_for(each)]
    names = [operation.action for operation in api.operations() if operation.path == PATH and operation.action]
    by_action = {name: list(those_of(name, found)) for name in (*names, 'delete')}
    return {
        'actions': {name: told for name, told in by_action.items() if told} | {CONSOLE: [_console()]},
        'statuses': {str(state): status for state, status in STATUS.items()},
    }


def _console() -> dict[str, Any]:
    """What is off has none, though its URL can be asked for."""
    states = sorted(set(STATUS) - OFF)
    return {'states': states, 'tasks': None, 'lockable': False, 'launched': False, 'hosted': True}


def is_asked_for(requirement: Requirement) -> bool:
    """Whether clients ask for it: what is told from outside, and locked servers do not refuse, is no client's wish."""
    return requirement.lockable or requirement.name.startswith('create')


def those_of(action: str, found: Iterable[Requirement]) -> Iterable[dict[str, Any]]:
    name = OTHERWISE_CALLED.get(action, action.removeprefix('os-'))
    for each in found:
        if each.name == name:
            yield {
                'states': None if each.allowed is None else sorted(each.allowed),
                'tasks': None if each.while_doing is None else sorted(each.while_doing, key=str),
                'lockable': each.lockable,
                'launched': each.launched,
                'hosted': each.hosted,
            }
