"""The options of the other services of a cloud, with the names and groups that Nova uses.

How a service is found and reached, and the credentials of this one, are options of keystoneauth.
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
    """The options of keystoneauth for each group; none if it is not installed."""
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
    """The options of castellan, by group, which it registers itself when it is used; none if it is not installed."""
    try:
        from castellan import options
        from castellan.key_manager import key_manager_opts
    except ImportError:
        return []
    # Its other options are about credentials; here, those of callers and of this service are used.
    found = dict(options.list_opts())
    return [('key_manager', [*key_manager_opts]), *((group, found[group]) for group in ('barbican', 'vault'))]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the groups for a configuration that uses other services; loading them takes time."""
    for group, listed in options().items():
        conf.register_opts(listed, group=group)


def are_wanted(conf: cfg.ConfigOpts) -> bool:
    """Whether the configuration uses services that are not built in."""
    if conf.api.auth_strategy == 'keystone' or conf.placement.enabled:
        return True
    return are_among(conf, 'identity', *ASKED_BY_HOSTS)


def are_among(conf: cfg.ConfigOpts, *kinds: str) -> bool:
    """Whether one of these backends is another service. Backends from other packages read what they need themselves."""
    return any(conf[kind].backend != 'local' and ':' not in conf[kind].backend for kind in kinds)


def task_token_keys(conf: cfg.ConfigOpts) -> list[str]:
    """The keys with which tokens are encrypted; none if there is no neighbour to send tokens to."""
    return list(conf.service_user.task_token_key) if are_wanted(conf) else []
