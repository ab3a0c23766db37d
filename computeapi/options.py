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
