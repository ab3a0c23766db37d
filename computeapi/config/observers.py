"""The options of what operators see: metrics and traces."""

from oslo_config import cfg

TRACING = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether requests and tasks are traced by OpenTelemetry, which the extra `tracing` installs; the '
        'environment variables OTEL_* say how much of it goes where.',
    ),
]

METRICS = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether the service counts what it does, and tells it at /metrics as Prometheus reads it; in `serve` it '
        'does by default.',
    ),
    cfg.StrOpt(
        'token',
        secret=True,
        help='Whoever sends this as a bearer token reads /metrics, from anywhere; nobody does without it. Unset: '
        'allowed_addresses do.',
    ),
    cfg.ListOpt(
        'allowed_addresses',
        default=['127.0.0.0/8', '::1/128'],
        help='The networks that read /metrics where there is no token. What comes through a proxy that says so is from '
        'none of them; before a proxy that does not, set a token.',
    ),
    cfg.StrOpt(
        'directory',
        help='Where the processes of one service on one machine put their counts together, such as /run/computeapi; '
        'needed where several answer requests. What is in it goes when the first of them starts. Unset: each process '
        'tells of itself.',
    ),
    cfg.StrOpt('worker_host', default='127.0.0.1', help='The address at which `computeapi worker` tells its metrics.'),
    cfg.PortOpt('worker_port', min=1, help='The port there; unset: it does not.'),
    cfg.IntOpt(
        'count_interval',
        default=60,
        min=1,
        help='Seconds between two counts of servers, hosts and quotas, which one process does for all when metrics are '
        'asked for.',
    ),
]
