"""The history of servers: actions and migrations."""

from collections.abc import Callable, Sequence

from computeapi.kit.scenes.document import Place
from computeapi.kit.scenes.scene import Entry, Scene, Values
from computeapi.kit.scenes.server_schema import ACTION, EVENT, MIGRATION
from computeapi.states import VMState

BUILD = 'compute__do_build_and_run_instance'
ASKED = ('user_id', 'project_id')

Flavors = Callable[[str | Entry, Place], Values]


def load(scene: Scene, server: Values, entry: Entry, place: Place, flavor: Flavors) -> Sequence[Values]:
    """Add the actions of a server, and its migrations, which are returned.

    flavor: returns what a server stores of a flavor that is named or described.
    """
    if 'actions' in entry:
        for number, action in enumerate(entry['actions']):
            _add_action(scene, server, action, (*place, 'actions', number))
    else:
        _add_creation(scene, server)
    moves = [
        _move(scene, server, move, (*place, 'migrations', number), flavor)
        for number, move in enumerate(entry.get('migrations', ()))
    ]
    if server['vm_state'] == VMState.RESIZED and not any(move['status'] == 'finished' for move in moves):
        told = {'type': 'resize', 'status': 'finished', 'source_host': server['host'], 'dest_host': server['host']}
        moves.append(_move(scene, server, told, place, flavor))
    scene.rows['migrations'].extend(moves)
    return moves


def _add_action(scene: Scene, server: Values, entry: Entry, place: Place) -> None:
    row = scene.values(ACTION, entry, place)
    start = row['start_time'] = row['start_time'] or server['created_at']
    finish = row['finish_time'] = row['finish_time'] or (None if 'finish_time' in entry else start)
    row['updated_at'] = row['updated_at'] or finish or start
    row |= {name: row[name] or server[name] for name in ASKED}
    row['request_id'] = row['request_id'] or f'req-{scene.made_id("requests", server["uuid"])}'
    row |= {'id': scene.number('server_actions'), 'server_id': server['uuid']}
    scene.rows['server_actions'].append(row)
    for number, each in enumerate(entry.get('events', ())):
        event = scene.values(EVENT, each, (*place, 'events', number))
        event['start_time'] = event['start_time'] or start
        event['finish_time'] = event['finish_time'] or (None if 'finish_time' in each else finish)
        event['action_id'] = row['id']
        scene.rows['server_action_events'].append(event)


def _add_creation(scene: Scene, server: Values) -> None:
    """The first action of a server; unfinished if the server is being built."""
    start, finish = server['created_at'], server['launched_at'] or server['created_at']
    failed = server['vm_state'] == VMState.ERROR and server['launched_at'] is None
    ended = finish
    if server['vm_state'] == VMState.BUILDING:
        ended, finish = None, start
    number = scene.number('server_actions')
    action = {
        'id': number,
        'server_id': server['uuid'],
        'action': 'create',
        'request_id': f'req-{scene.made_id("requests", server["uuid"])}',
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
    scene.rows['server_actions'].append(action)
    scene.rows['server_action_events'].append(event)


def _move(scene: Scene, server: Values, entry: Entry, place: Place, flavor: Flavors) -> Values:
    row = scene.values(MIGRATION, entry, place)
    for name in ('old_flavor', 'new_flavor'):
        row[name] = flavor(entry[name], (*place, name)) if entry.get(name) else server['flavor']
    row['uuid'] = row['uuid'] or scene.made_id('migrations', server['uuid'])
    row['created_at'] = row['created_at'] or server['updated_at'] or server['created_at']
    row |= {name: row[name] or server[name] for name in ASKED}
    hosts = scene.index('hosts').rows
    for side in ('source', 'dest'):
        host = hosts.get(row[f'{side}_host'] or '')
        if host is not None and row[f'{side}_node'] is None:
            row[f'{side}_node'] = host['hypervisor_hostname']
    return row | {'server_id': server['uuid'], 'plugged': None}
