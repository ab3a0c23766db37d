"""Every metric there is: its kind, its labels and what it tells.

`python -m computeapi.observers.families` prints the table of them in docs/reference/metrics.md.
"""

from typing import NamedTuple


class Family(NamedTuple):
    """Metrics of one name. Each label has one of few values, whatever clients send."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()


COUNTED = {
    'computeapi_requests_total': Family(
        'counter',
        'Requests to the compute API, by what they asked for; `none` where that is no operation, or no version, or '
        'was not come to, as without a valid token.',
        ('operation', 'microversion', 'status'),
    ),
    'computeapi_request_seconds': Family(
        'histogram', 'How long requests took, from their headers to the end of the answer.', ('operation',)
    ),
    'computeapi_task_attempts_total': Family(
        'counter',
        'How often a worker took up a task, by what came of it: done, failed (and its server knows), waiting (for a '
        'driver or a neighbour), retried (after trouble).',
        ('kind', 'outcome'),
    ),
    'computeapi_task_takeovers_total': Family('counter', 'Tasks taken over from a worker that was gone.', ('kind',)),
    'computeapi_task_seconds': Family('histogram', 'How long a worker was at a task each time.', ('kind',)),
    'computeapi_neighbour_calls_total': Family(
        'counter',
        'Requests to other services of the cloud, by what came of them: ok, refused (4xx), failed (5xx), away (no '
        'answer, or 502 to 504).',
        ('service', 'outcome'),
    ),
    'computeapi_neighbour_call_seconds': Family('histogram', 'How long they took to answer.', ('service',)),
    'computeapi_database_connections': Family(
        'gauge', 'Connections to the database that are open: in_use or idle. Looked at every 5 s.', ('state',)
    ),
    'computeapi_database_connections_kept': Family(
        'gauge', 'How many of them are kept open; those in use beyond that are made anew each time.'
    ),
    'computeapi_database_troubles_total': Family(
        'counter', 'Errors whose reason was the database: deadlock, lost (a connection) or other.', ('kind',)
    ),
}
"""What the processes of a machine count; their sum is told."""

TOLD = {
    'computeapi_build_info': Family('gauge', '1, with the release.', ('version', 'python')),
    'computeapi_database_up': Family('gauge', 'Whether the database answered what follows.'),
    'computeapi_broker_up': Family('gauge', 'Whether this process reaches the broker, where hosts have agents.'),
    'computeapi_tasks': Family('gauge', 'Tasks in the queue, also those under way and those whose time is to come.'),
    'computeapi_oldest_task_seconds': Family(
        'gauge', 'For how long the oldest task is due that nobody does; 0: there is none.'
    ),
    'computeapi_processes': Family('gauge', 'Processes of the service that live.', ('binary',)),
    'computeapi_placement_changes': Family('gauge', 'Changes that Placement is still to be told.'),
    'computeapi_servers': Family('gauge', 'Servers that are not deleted, by vm_state.', ('state',)),
    'computeapi_hosts': Family('gauge', 'Compute hosts: up, down or disabled.', ('state',)),
    'computeapi_quota_used': Family(
        'gauge', 'What all projects use of instances, cores, ram (in MiB) and server_groups.', ('resource',)
    ),
    'computeapi_quota_projects': Family('gauge', 'How many projects use any of it.', ('resource',)),
    'computeapi_quota_full': Family('gauge', 'How many projects use 90 % of their quota or more.', ('resource',)),
    'computeapi_count_age_seconds': Family('gauge', 'How long ago servers, hosts and quotas were counted.'),
}
"""What the database knows of the whole cloud: every process tells the same."""

FAMILIES = COUNTED | TOLD


def table() -> str:
    """In Markdown, as docs/reference/metrics.md has it."""
    rows = [(f'`{name}`', f.kind, ', '.join(f.labels), f.help) for name, f in FAMILIES.items()]
    return '\n'.join(f'| {" | ".join(row)} |' for row in [('metric', 'kind', 'labels', 'what'), ('---',) * 4, *rows])


if __name__ == '__main__':
    print(table())
