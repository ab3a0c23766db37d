"""Which actions are possible in which states of a server, from the transitions of servers, and facts for the page.

    {
        'actions': {'os-stop': [{'states': ['active', 'error'], 'tasks': [null], 'lockable': true, 'launched': true,
                                 'hosted': true}]},
        'statuses': {'active': 'ACTIVE', ...},
        'owner': 'compute:nova',
    }

An action is possible if one of its requirements is met: `states` are vm_states and `tasks` task_states; null means any
(within `tasks`, null means that there is no task). `owner` is the device_owner of ports of servers without a zone.
"""

from collections.abc import Iterable
from typing import Any

from computeapi import api
from computeapi.backends.network import owner_of
from computeapi.compute.consoles import OFF
from computeapi.compute.servers import TRANSITIONS, machines
from computeapi.compute.tasks.transition import Requirement
from computeapi.states import STATUS

PATH = '/servers/{server_id}/action'
CONSOLE = 'console'
"""Not an action of the API, but shown with the actions on the page."""
OTHERWISE_CALLED = {'os-migrateLive': 'live-migration'}
"""Actions whose recorded name differs from the API's in more than a prefix `os-`."""


def requirements() -> dict[str, Any]:
    """The document."""
    found = [each for each in (*TRANSITIONS, machines.CHANGE_PASSWORD) if is_asked_for(each)]
    names = [operation.action for operation in api.operations() if operation.path == PATH and operation.action]
    by_action = {name: list(those_of(name, found)) for name in (*names, 'delete')}
    return {
        'actions': {name: needed for name, needed in by_action.items() if needed} | {CONSOLE: [_console()]},
        'statuses': {str(state): status for state, status in STATUS.items()},
        'owner': owner_of(None),
    }


def _console() -> dict[str, Any]:
    """A server that is off has no console, though its URL can be requested."""
    states = sorted(set(STATUS) - OFF)
    return {'states': states, 'tasks': None, 'lockable': False, 'launched': False, 'hosted': True}


def is_asked_for(requirement: Requirement) -> bool:
    """Whether clients request it. Apart from `create...`, what locked servers allow is only reported from outside."""
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
