"""The options of agents on compute hosts, and of the message bus."""

from oslo_config import cfg

AGENT = [
    cfg.StrOpt('host', help='Name of the host that an agent drives; unset: the hostname of its machine.'),
    cfg.StrOpt(
        'my_ip',
        help='The address at which other machines reach that of an agent, for console proxies and for migrations '
        'between hosts; unset: the address that it uses for outgoing connections.',
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/computeapi/agent',
        help='Directory in which an agent keeps the state that it needs after a restart.',
    ),
    cfg.ListOpt(
        'secret',
        secret=True,
        help='On the control plane, the same for all its processes: the secret that the keys of agents are derived '
        'from, at least 32 characters long, without commas. Only reports that agents sign are then accepted. While it '
        'is being replaced, two, separated by a comma: the first signs, both are accepted. Unset: the reports of '
        'everybody that the broker lets in.',
    ),
    cfg.ListOpt(
        'allowed_networks',
        default=[],
        help='On the control plane: the networks in which the addresses of hosts lie, e.g. 192.0.2.0/24. Reports of '
        'agents with other addresses are rejected, so console proxies connect to nothing else. Unset: any address.',
    ),
    cfg.ListOpt(
        'key',
        secret=True,
        help='On a compute machine: the output of `computeapi agent-key HOST` on the control plane. The agent signs '
        'its reports, and executes only what is signed with the key; of two keys the first signs, and both are '
        'accepted. Unset: it executes everything that comes over the bus.',
    ),
    cfg.IntOpt('errands', default=16, min=1, help='Number of servers that an agent works on concurrently.'),
    cfg.PortOpt('console_port', default=5999, help='The port at my_ip for console proxies; 0: any free port.'),
]


def bus_options() -> dict[str, list[cfg.Opt]]:
    """The options of oslo.messaging, by group, which are registered if there is a bus; none if it is not installed."""
    from computeapi import bus

    try:
        return bus.options()
    except cfg.ConfigFileValueError:
        return {}
