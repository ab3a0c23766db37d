"""The administrator password of a server, which is shown once, in responses."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from computeapi.compute.passwords import generate

NAME = 'adminPass'


def password_of(conf: cfg.ConfigOpts, wanted: Mapping[str, Any]) -> str:
    """The requested password, or a new one."""
    stated: str | None = wanted.get(NAME)
    return generate(conf.password_length) if stated is None else stated


def shown_password(conf: cfg.ConfigOpts, password: str | None) -> dict[str, Any]:
    """The password in a response, if that is enabled."""
    return {NAME: password} if conf.api.enable_instance_password else {}
