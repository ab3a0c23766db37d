"""The options of what runs on compute machines, and of the bus that leads to it."""

from oslo_config import cfg

AGENT = [
    cfg.StrOpt('host', help='What the machine of an agent is called among hosts; unset: as it calls itself.'),
    cfg.StrOpt(
        'my_ip',
        help='The address by which other machines know that of an agent, for proxies to consoles and for what moves '
        'between hosts; unset: the one that it has on the way out.',
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/computeapi/agent',
        help='The directory in which an agent keeps what it must know when it is started again.',
    ),
    cfg.StrOpt(
        'secret',
        secret=True,
        help='At the control plane, the same for all its processes: what the keys of agents are made from, of 32 '
        'characters at least. Agents are believed then that sign what they report. Unset: all that the broker lets in.',
    ),
    cfg.StrOpt(
        'key',
        secret=True,
        help='On a compute machine: what `computeapi agent-key HOST` prints where the secret is. The agent signs what '
        'it reports, and does only what is signed with it. Unset: whatever the bus says.',
    ),
    cfg.IntOpt('errands', default=16, min=1, help='With how many servers an agent does something at a time.'),
    cfg.PortOpt('console_port', default=5999, help='The port at my_ip for proxies to consoles; 0: any that is free.'),
]


def bus_options() -> dict[str, list[cfg.Opt]]:
    """oslo.messaging's by group, which are registered when there is a bus; none where it is not installed."""
    from computeapi import bus

    try:
        return bus.options()
    except cfg.ConfigFileValueError:
        return {}
