"""The options of the scheduler."""

from oslo_config import cfg

SCHEDULER = [
    cfg.ListOpt(
        'enabled_filters',
        default=[
            'ComputeFilter',
            'AvailabilityZoneFilter',
            'ComputeCapabilitiesFilter',
            'ImagePropertiesFilter',
            'SameHostFilter',
            'DifferentHostFilter',
            'ServerGroupAntiAffinityFilter',
            'ServerGroupAffinityFilter',
        ],
        help='The filters that a host must pass, in this order.',
    ),
    cfg.ListOpt(
        'weight_classes',
        default=['ServerGroupSoftAffinityWeigher', 'ServerGroupSoftAntiAffinityWeigher', 'RAMWeigher', 'CPUWeigher'],
        help='The weighers that rank the hosts, most important first.',
    ),
    cfg.FloatOpt(
        'cpu_allocation_ratio', default=4.0, min=0.1, help='CPU overcommit ratio: virtual CPUs per CPU of a host.'
    ),
    cfg.FloatOpt(
        'ram_allocation_ratio',
        default=1.0,
        min=0.1,
        help='Memory overcommit ratio: how many times the memory of a host is allocated.',
    ),
    cfg.FloatOpt(
        'disk_allocation_ratio',
        default=1.0,
        min=0.1,
        help='Disk overcommit ratio: how many times the disk of a host is allocated.',
    ),
]

ATTEMPTS = [
    cfg.IntOpt(
        'max_attempts',
        default=3,
        min=1,
        help='Number of hosts on which a new server is tried, one after the other, if a host fails to boot it.',
    ),
]
