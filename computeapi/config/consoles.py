"""The options of consoles: which ones servers have, what their URLs are, and the proxy behind these."""

from oslo_config import cfg

PROXY = [
    cfg.StrOpt(
        'cert',
        help='A file with the certificate of the proxies of consoles, and those above it; unset: they do no TLS.',
    ),
    cfg.StrOpt('key', help='The file with the key of that certificate, if it is not in the same one.'),
]


def listening(name: str, port: int) -> list[cfg.Opt]:
    """Where the proxy of a type of console listens."""
    return [
        cfg.StrOpt(
            f'{name}_host',
            default='0.0.0.0',
            help='The address at which `computeapi consoleproxy` listens. `serve` has that of its option --host.',
        ),
        cfg.PortOpt(
            f'{name}_port', default=port, help='The port at which it listens; 0, as for `serve`: any that is free.'
        ),
    ]


def base_url(name: str, default: str, more: str = '') -> cfg.Opt:
    """What clients know the proxy by."""
    return cfg.StrOpt(name, default=default, help=f'URL of the proxy{more}. By default `serve` names its own.')


CONSOLES: dict[str, list[cfg.Opt]] = {
    'vnc': [
        cfg.BoolOpt('enabled', default=True, help='Whether servers have VNC consoles.'),
        base_url('novncproxy_base_url', 'http://127.0.0.1:6080/vnc_auto.html', ', with the page that browsers show'),
        *listening('novncproxy', 6080),
    ],
    'spice': [
        cfg.BoolOpt('enabled', default=False, help='Whether servers have SPICE consoles.'),
        base_url('html5proxy_base_url', 'http://127.0.0.1:6082/spice_auto.html'),
        *listening('html5proxy', 6082),
        cfg.StrOpt(
            'spice_direct_proxy_base_url',
            default='http://127.0.0.1:13002/nova',
            help='URL of the proxy that clients of SPICE itself are sent to.',
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
        cfg.IntOpt('token_ttl', default=600, min=1, help='Seconds that the URL of a console can be used.'),
        cfg.BoolOpt(
            'enforce_session_timeout',
            default=False,
            help='Whether a connection that was opened with the URL ends with that time, too.',
        ),
    ],
    'console': [
        cfg.ListOpt(
            'allowed_origins',
            default=[],
            help='Names of hosts whose pages may open consoles, and show their pages in frames, as dashboards do; the '
            'host that a request is for always may.',
        ),
        cfg.IntOpt(
            'max_connections',
            default=200,
            min=1,
            help='How many connections to consoles there can be at a proxy at a time: one for a console, three for one '
            'by SPICE.',
        ),
        cfg.IntOpt(
            'max_frame_bytes',
            default=1024 * 1024,
            min=1024,
            help='The most bytes that a client can send in one message.',
        ),
        cfg.IntOpt(
            'idle_timeout', default=3600, min=1, help='Seconds after which a client is cut off that has sent nothing.'
        ),
    ],
}
