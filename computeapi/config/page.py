"""The options of the page for people."""

from oslo_config import cfg

UI = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether there is a page for people at /ui/, which shows what the API is at each version; in `serve` '
        'there is by default.',
    ),
]
