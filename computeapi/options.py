"""Every option that the service reads: its own, and those of the installed libraries."""

from collections.abc import Iterator, Sequence
from itertools import chain

from oslo_config import cfg
from oslo_middleware import opts as middleware
from oslo_policy import opts as policy

from computeapi import config, pipeline
from computeapi.config import neighbours
from computeapi.config.agent import bus_options


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """The options by group, for the sample generator."""
    found: dict[str, list[cfg.Opt]] = {}
    for group, listed in chain(config.GROUPS.items(), _of_libraries()):
        found.setdefault(group, []).extend(listed)
    return list(found.items())


def unknown_in(conf: cfg.ConfigOpts) -> list[str]:
    """What is in the config files but is no option, such as [api]max_limt or [databse], and therefore has no effect.

    Libraries and backends from other packages register further options when they are loaded. So groups with options of
    libraries are not searched, nor are other sections reported that may be of a backend.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    for file in conf.config_file:
        cfg.ConfigParser(file, sections).parse()
    known = {group.lower(): {each.dest for each in listed} for group, listed in list_opts()}
    own = {group.lower() for group in config.GROUPS} - set(neighbours.GROUPS)
    of_others = {name for names in sections.values() for name in names.get('auth_section', ())}
    groups = [conf[group] for group in config.GROUPS if group != 'DEFAULT']
    has_others = any('backend' in group and ':' in group.backend for group in groups)
    found = []
    for section, names in sections.items():
        group = section.lower()
        if group in own:
            found += [f'[{section}]{name}' for name in names if name.replace('-', '_') not in known[group]]
        elif group not in known and section not in of_others and not has_others:
            found.append(f'[{section}]')
    return found


def _of_libraries() -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    yield from policy.list_opts()
    yield 'cors', pipeline.cors_options()
    yield from middleware.list_opts_http_proxy_to_wsgi()
    yield from middleware.list_opts_sizelimit()
    yield from _of_tokens()
    yield from neighbours.options().items()
    yield from neighbours.key_manager_options()
    yield from bus_options().items()


def _of_tokens() -> list[tuple[str, list[cfg.Opt]]]:
    """The options of keystonemiddleware; none if it is not installed."""
    try:
        from computeapi.web import keystone
    except ImportError:
        return []
    return keystone.options()
