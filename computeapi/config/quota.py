"""The options of the default quotas."""

from oslo_config import cfg

QUOTA = [
    cfg.IntOpt('instances', default=10, min=-1, help='Servers per project; -1: no limit.'),
    cfg.IntOpt('cores', default=20, min=-1, help='Virtual CPUs per project; -1: no limit.'),
    cfg.IntOpt('ram', default=50 * 1024, min=-1, help='Memory per project in MiB; -1: no limit.'),
    cfg.IntOpt('metadata_items', default=128, min=-1, help='Metadata items per server; -1: no limit.'),
    cfg.IntOpt('injected_files', default=5, min=-1, help='Injected files per server; -1: no limit.'),
    cfg.IntOpt(
        'injected_file_content_bytes',
        default=10 * 1024,
        min=-1,
        help='Bytes of the content of an injected file; -1: no limit.',
    ),
    cfg.IntOpt(
        'injected_file_path_length', default=255, min=-1, help='Bytes of the path of an injected file; -1: no limit.'
    ),
    cfg.IntOpt('key_pairs', default=100, min=-1, help='Key pairs per user; -1: no limit.'),
    cfg.IntOpt('server_groups', default=10, min=-1, help='Server groups per project; -1: no limit.'),
    cfg.IntOpt('server_group_members', default=10, min=-1, help='Servers per server group; -1: no limit.'),
]
