"""All metrics: their kinds, labels and descriptions.

`python -m computeapi.observers.families` prints the table in docs/reference/metrics.md.
"""

from typing import NamedTuple


class Family(NamedTuple):
    """The metrics with one name. Labels have few values, whatever clients send."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()


COUNTED = {
    'computeapi_requests_total': Family(
        'counter',
        'Requests to the compute API, by operation, microversion and status; `none` if the request matched no '
        'operation or version, or was refused earlier, such as without a valid token.',
        ('operation', 'microversion', 'status'),
    ),
    'computeapi_request_seconds': Family(
        'histogram', 'Duration of requests, from their headers to the end of the response.', ('operation',)
    ),
    'computeapi_task_attempts_total': Family(
        'counter',
        'Attempts of workers at tasks, by outcome: done, failed (recorded on the server), waiting (for a driver or '
        'another service), retried (after an error of the infrastructure).',
        ('kind', 'outcome'),
    ),
    'computeapi_task_takeovers_total': Family('counter', 'Tasks taken over from a worker that died.', ('kind',)),
    'computeapi_task_seconds': Family('histogram', 'Duration of each attempt at a task.', ('kind',)),
    'computeapi_neighbour_calls_total': Family(
        'counter',
        'Requests to other services of the cloud, by outcome: ok, refused (4xx), failed (5xx), away (no response, or '
        '502 to 504).',
        ('service', 'outcome'),
    ),
    'computeapi_neighbour_call_seconds': Family(
        'histogram', 'Response times of other services of the cloud.', ('service',)
    ),
    'computeapi_database_connections': Family(
        'gauge', 'Open connections to the database: in_use or idle. Sampled every 5 s.', ('state',)
    ),
    'computeapi_database_connections_kept': Family(
        'gauge',
        'Number of connections to the database that are kept open; those in use beyond that are opened anew each time.',
    ),
    'computeapi_database_errors_total': Family(
        'counter', 'Errors caused by the database: deadlock, lost (connection) or other.', ('kind',)
    ),
}
"""What the processes of a machine count; the sum of them is reported."""

FROM_DATABASE = {
    'computeapi_build_info': Family(
        'gauge', 'Always 1; the labels are the release and the version of Python.', ('version', 'python')
    ),
    'computeapi_database_up': Family(
        'gauge', 'Whether the database responded to the queries for the metrics that follow.'
    ),
    'computeapi_broker_up': Family('gauge', 'Whether this process can reach the broker, if hosts have agents.'),
    'computeapi_tasks': Family(
        'gauge', 'Tasks in the queue, including those in progress and those scheduled for later.'
    ),
    'computeapi_oldest_task_seconds': Family(
        'gauge', 'Seconds since the oldest task that is due and not in progress became due; 0: there is none.'
    ),
    'computeapi_processes': Family('gauge', 'Live processes of the service.', ('binary',)),
    'computeapi_placement_changes': Family('gauge', 'Changes not yet reported to Placement.'),
    'computeapi_notifications_waiting': Family('gauge', 'Notifications not yet sent, if they are on.'),
    'computeapi_servers': Family('gauge', 'Servers that are not deleted, by vm_state.', ('state',)),
    'computeapi_hosts': Family('gauge', 'Compute hosts: up, down or disabled.', ('state',)),
    'computeapi_quota_used': Family(
        'gauge', 'Usage of all projects: instances, cores, ram (in MiB) and server_groups.', ('resource',)
    ),
    'computeapi_quota_projects': Family('gauge', 'Projects that use any of the resource.', ('resource',)),
    'computeapi_quota_full': Family('gauge', 'Projects that use 90 % or more of their quota.', ('resource',)),
    'computeapi_count_age_seconds': Family('gauge', 'Seconds since servers, hosts and quotas were last counted.'),
}
"""What the database knows of the whole cloud: every process reports the same."""

FAMILIES = COUNTED | FROM_DATABASE


def table() -> str:
    """The table in docs/reference/metrics.md, in Markdown."""
    rows = [(f'`{name}`', f.kind, ', '.join(f.labels), f.help) for name, f in FAMILIES.items()]
    return '\n'.join(f'| {" | ".join(row)} |' for row in [('metric', 'kind', 'labels', 'what'), ('---',) * 4, *rows])


if __name__ == '__main__':
    print(table())
