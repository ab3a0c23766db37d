"""The options of consoles: their types, URLs and proxies."""

from oslo_config import cfg

PROXY = [
    cfg.StrOpt(
        'cert',
        help='PEM file with the TLS certificate of the console proxies and its intermediate certificates, read for '
        'each connection; unset: they do not use TLS.',
    ),
    cfg.StrOpt('key', help='PEM file with the private key of that certificate, if it is not in the same file.'),
]


def listening(name: str, port: int) -> list[cfg.Opt]:
    """The options for where the proxy of a console type listens."""
    return [
        cfg.StrOpt(
            f'{name}_host',
            default='0.0.0.0',
            help='The address on which `computeapi consoleproxy` listens. `serve` uses its --host option instead.',
        ),
        cfg.PortOpt(
            f'{name}_port',
            default=port,
            help='The port on which the proxy listens; 0, the default in `serve`: any free port.',
        ),
    ]


def base_url(name: str, default: str, more: str = '') -> cfg.Opt:
    """The option for the URL at which clients reach the proxy."""
    return cfg.StrOpt(
        name, default=default, help=f'URL of the proxy{more}. `serve` defaults to the URL of its own proxy.'
    )


CONSOLES: dict[str, list[cfg.Opt]] = {
    'vnc': [
        cfg.BoolOpt('enabled', default=True, help='Whether servers have VNC consoles.'),
        base_url('novncproxy_base_url', 'http://127.0.0.1:6080/vnc_auto.html', ', with the page that browsers open'),
        *listening('novncproxy', 6080),
    ],
    'spice': [
        cfg.BoolOpt('enabled', default=False, help='Whether servers have SPICE consoles.'),
        base_url('html5proxy_base_url', 'http://127.0.0.1:6082/spice_auto.html'),
        *listening('html5proxy', 6082),
        cfg.StrOpt(
            'spice_direct_proxy_base_url',
            default='http://127.0.0.1:13002/nova',
            help='URL of the proxy for native SPICE clients.',
        ),
    ],
    'rdp': [
        cfg.BoolOpt('enabled', default=False, help='Whether servers have RDP consoles.'),
        cfg.StrOpt('html5_proxy_base_url', default='http://127.0.0.1:6083/', help='URL of the proxy.'),
    ],
    'serial_console': [
        cfg.BoolOpt('enabled', default=True, help='Whether servers have serial consoles.'),
        base_url(
            'base_url', 'ws://127.0.0.1:6083/', '; browsers show a terminal when it begins with http instead of ws'
        ),
        *listening('serialproxy', 6083),
    ],
    'mks': [
        cfg.BoolOpt('enabled', default=False, help='Whether servers have WebMKS consoles.'),
        cfg.StrOpt('mksproxy_base_url', default='http://127.0.0.1:6090/', help='URL of the proxy.'),
    ],
    'consoleauth': [
        cfg.IntOpt('token_ttl', default=600, min=1, help='Seconds for which the URL of a console is valid.'),
        cfg.BoolOpt(
            'enforce_session_timeout',
            default=False,
            help='Whether a connection that was opened with the URL is closed when that time is over.',
        ),
    ],
    'console': [
        cfg.ListOpt(
            'allowed_origins',
            default=[],
            help='Hosts whose pages may open consoles, and show the console pages in frames, as dashboards do. The '
            'host that a request addresses is always allowed.',
        ),
        cfg.IntOpt(
            'max_connections',
            default=200,
            min=1,
            help='Maximum number of concurrent connections at a proxy: one for a console, three for a SPICE console.',
        ),
        cfg.IntOpt(
            'max_frame_bytes',
            default=1024 * 1024,
            min=1024,
            help='Maximum size of one message from a client, in bytes.',
        ),
        cfg.IntOpt(
            'idle_timeout',
            default=3600,
            min=1,
            help='Seconds after which a client that has sent nothing is disconnected.',
        ),
    ],
}
