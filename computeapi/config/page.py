"""The options of the web interface."""

from oslo_config import cfg

UI = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether the web page at /ui/ is enabled, which shows the API at each version; enabled by default in '
        '`serve`.',
    ),
]
