"""The options of the services that this one stands on in a cloud, named and grouped as they are for Nova.

How such a service is found and reached, and who this one is there, are keystoneauth's options.
"""

from oslo_config import cfg

GROUPS = ('service_user', 'keystone', 'glance', 'neutron', 'cinder', 'placement')
ASKED_BY_HOSTS = ('image', 'network', 'volume')

SERVICE_USER = [
    cfg.ListOpt(
        'task_token_key',
        secret=True,
        default=[],
        help='Keys that encrypt the tokens of callers that tasks need, and the initial passwords of guests: 32 bytes '
        'in URL-safe base64, the same for all processes. If there are several, the first one encrypts, and the others '
        'still decrypt. Without a key, neither is stored: Cinder cannot create volumes for servers, and config drives '
        'contain no password.',
    ),
]

DEFAULTS = {'timeout': 60, 'connect_retries': 3, 'connect_retry_delay': 0.5}


def options() -> dict[str, list[cfg.Opt]]:
    """keystoneauth's options for each group; none where it is not installed."""
    try:
        from keystoneauth1 import loading
    except ImportError:
        return {}
    found = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    cfg.set_defaults(found, **DEFAULTS)
    return {group: [*found, *(SERVICE_USER if group == 'service_user' else ())] for group in GROUPS}


def key_manager_options() -> list[tuple[str, list[cfg.Opt]]]:
    """castellan's, by group, which it knows itself when it is asked for a key; none where it is not installed."""
    try:
        from castellan import options
        from castellan.key_manager import key_manager_opts
    except ImportError:
        return []
    # What else it has is about credentials, which are those of callers and of this service here.
    found = dict(options.list_opts())
    return [('key_manager', [*key_manager_opts]), *((group, found[group]) for group in ('barbican', 'vault'))]


def register(conf: cfg.ConfigOpts) -> None:
    """Make the groups known to a configuration that names such a service; they take their time to load."""
    for group, listed in options().items():
        conf.register_opts(listed, group=group)


def are_wanted(conf: cfg.ConfigOpts) -> bool:
    """Whether something else than what is built in stands behind the service."""
    if conf.api.auth_strategy == 'keystone' or conf.placement.enabled:
        return True
    return are_among(conf, 'identity', *ASKED_BY_HOSTS)


def are_among(conf: cfg.ConfigOpts, *kinds: str) -> bool:
    """Whether one of these backends is another service; what another package brings reads what it needs itself."""
    return any(conf[kind].backend != 'local' and ':' not in conf[kind].backend for kind in kinds)


def task_token_keys(conf: cfg.ConfigOpts) -> list[str]:
    """The keys that tokens are kept with; none where there is no neighbour to send them to."""
    return list(conf.service_user.task_token_key) if are_wanted(conf) else []
