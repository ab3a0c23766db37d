"""The options of metrics and traces."""

from oslo_config import cfg

TRACING = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether requests and tasks are traced with OpenTelemetry, which the extra `tracing` installs; the '
        'environment variables OTEL_* configure what is exported, and where to.',
    ),
]

METRICS = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether the service collects metrics and exposes them at /metrics in the format of Prometheus; enabled '
        'by default in `serve`.',
    ),
    cfg.StrOpt(
        'token',
        secret=True,
        help='Bearer token with which /metrics can be read, from any address; without it, nobody can. Unset: '
        'allowed_addresses applies.',
    ),
    cfg.ListOpt(
        'allowed_addresses',
        default=['127.0.0.0/8', '::1/128'],
        help='The networks that may read /metrics if there is no token. A request with the headers of a proxy is '
        'always refused; behind a proxy that sets none, set a token.',
    ),
    cfg.StrOpt(
        'directory',
        help='Directory where the processes of one service on one machine combine their metrics, such as '
        '/run/computeapi; required if several processes answer requests. Its contents are deleted when the first of '
        'them starts. Unset: each process reports its own metrics.',
    ),
    cfg.StrOpt(
        'worker_host', default='127.0.0.1', help='The address at which `computeapi worker` exposes its metrics.'
    ),
    cfg.PortOpt('worker_port', min=1, help='The port at that address; unset: it does not expose them.'),
    cfg.IntOpt(
        'count_interval',
        default=60,
        min=1,
        help='Seconds between two counts of servers, hosts and quotas; one process counts for all, when metrics are '
        'requested.',
    ),
]
