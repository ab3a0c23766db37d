"""The history of servers: actions and migrations."""

from collections.abc import Callable, Sequence

from computeapi.kit.cloud_files.content import CloudContent, Entry, Values
from computeapi.kit.cloud_files.document import Place
from computeapi.kit.cloud_files.server_schema import ACTION, EVENT, MIGRATION
from computeapi.states import VMState

BUILD = 'compute__do_build_and_run_instance'
ASKED = ('user_id', 'project_id')

Flavors = Callable[[str | Entry, Place], Values]


def load(content: CloudContent, server: Values, entry: Entry, place: Place, flavor: Flavors) -> Sequence[Values]:
    """Add the actions of a server, and its migrations, which are returned.

    flavor: returns what a server stores of a flavor that is named or described.
    """
    if 'actions' in entry:
        for number, action in enumerate(entry['actions']):
            _add_action(content, server, action, (*place, 'actions', number))
    else:
        _add_creation(content, server)
    moves = [
        _move(content, server, move, (*place, 'migrations', number), flavor)
        for number, move in enumerate(entry.get('migrations', ()))
    ]
    if server['vm_state'] == VMState.RESIZED and not any(move['status'] == 'finished' for move in moves):
        resize = {'type': 'resize', 'status': 'finished', 'source_host': server['host'], 'dest_host': server['host']}
        moves.append(_move(content, server, resize, place, flavor))
    content.rows['migrations'].extend(moves)
    return moves


def _add_action(content: CloudContent, server: Values, entry: Entry, place: Place) -> None:
    row = content.values(ACTION, entry, place)
    start = row['start_time'] = row['start_time'] or server['created_at']
    finish = row['finish_time'] = row['finish_time'] or (None if 'finish_time' in entry else start)
    row['updated_at'] = row['updated_at'] or finish or start
    row |= {name: row[name] or server[name] for name in ASKED}
    row['request_id'] = row['request_id'] or f'req-{content.made_id("requests", server["uuid"])}'
    row |= {'id': content.number('server_actions'), 'server_id': server['uuid']}
    content.rows['server_actions'].append(row)
    for number, each in enumerate(entry.get('events', ())):
        event = content.values(EVENT, each, (*place, 'events', number))
        event['start_time'] = event['start_time'] or start
        event['finish_time'] = event['finish_time'] or (None if 'finish_time' in each else finish)
        event['action_id'] = row['id']
        content.rows['server_action_events'].append(event)


def _add_creation(content: CloudContent, server: Values) -> None:
    """The first action of a server; unfinished if the server is being built."""
    start, finish = server['created_at'], server['launched_at'] or server['created_at']
    failed = server['vm_state'] == VMState.ERROR and server['launched_at'] is None
    ended = finish
    if server['vm_state'] == VMState.BUILDING:
        ended, finish = None, start
    number = content.number('server_actions')
    action = {
        'id': number,
        'server_id': server['uuid'],
        'action': 'create',
        'request_id': f'req-{content.made_id("requests", server["uuid"])}',
        'start_time': start,
        'finish_time': ended,
        'updated_at': finish,
        'message': 'Error' if failed else None,
        'user_id': server['user_id'],
        'project_id': server['project_id'],
    }
    result = 'Error' if failed else 'Success'
    event = {
        'action_id': number,
        'event': BUILD,
        'start_time': start,
        'finish_time': ended,
        'result': result if ended else None,
        'traceback': None,
        'host': server['host'],
        'details': None,
    }
    content.rows['server_actions'].append(action)
    content.rows['server_action_events'].append(event)


def _move(content: CloudContent, server: Values, entry: Entry, place: Place, flavor: Flavors) -> Values:
    row = content.values(MIGRATION, entry, place)
    for name in ('old_flavor', 'new_flavor'):
        row[name] = flavor(entry[name], (*place, name)) if entry.get(name) else server['flavor']
    row['uuid'] = row['uuid'] or content.made_id('migrations', server['uuid'])
    row['created_at'] = row['created_at'] or server['updated_at'] or server['created_at']
    row |= {name: row[name] or server[name] for name in ASKED}
    hosts = content.index('hosts').rows
    for side in ('source', 'dest'):
        host = hosts.get(row[f'{side}_host'] or '')
        if host is not None and row[f'{side}_node'] is None:
            row[f'{side}_node'] = host['hypervisor_hostname']
    return row | {'server_id': server['uuid'], 'plugged': None}
