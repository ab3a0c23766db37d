"""The caller: the facts about it that every layer below the web needs."""

import functools
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import re2

WRITERS = frozenset({'admin', 'manager', 'member'})
"""The roles that may change the resources of their project. Readers, and services acting for themselves, may not."""
SERVICE = 'service'

FROM_THE_VERSION = re.compile(r'/v\d.*', re.DOTALL)
WILDCARD = re.compile(r'\*\*|\*|\{[^/{}]*\}')


class Permission(NamedTuple):
    """Requests that an application credential allows. In the path, * and {name} match one segment, and ** matches any
    number of them."""

    service: str
    method: str
    path: str

    def covers(self, method: str, path: str) -> bool:
        """Whether it allows such a request, wherever the service is mounted."""
        found = FROM_THE_VERSION.search(path)
        return self.method == method and found is not None and _pattern(self.path).fullmatch(found[0]) is not None


@functools.lru_cache(maxsize=256)
def _pattern(rule: str) -> Any:
    """The regular expression for the paths of a rule. It matches in linear time, because users write the rules."""
    options = re2.Options()
    options.dot_nl = True
    parts = [re2.escape(part) for part in WILDCARD.split(rule)]
    wild = ['.*' if part == '**' else '[^/]+' for part in WILDCARD.findall(rule)] + ['']
    return re2.compile(''.join(part + between for part, between in zip(parts, wild, strict=True)), options)


@dataclass(frozen=True)
class Context:
    """One caller in one request (or one task that outlives it).

    `roles` are lower-case role names; `project_id` is None for an unscoped token. `global_request_id` is the ID that
    the client gave to its operation as a whole, across services. `permissions` lists all that the caller may request;
    None unless its application credential has access rules. `service_roles` are those of the service that sends the
    request on behalf of the caller, if any. `auth_token` is the caller's token in a request; `sealed_token` is the
    same, encrypted, in a task. A context with neither, such as an elevated one, uses the credentials of this service
    for requests to other services.
    """

    user_id: str | None = None
    project_id: str | None = None
    roles: frozenset[str] = frozenset()
    user_name: str | None = None
    project_name: str | None = None
    user_domain_id: str | None = None
    project_domain_id: str | None = None
    system_scope: str | None = None
    domain_id: str | None = None
    is_admin_project: bool = True
    service_roles: frozenset[str] = frozenset()
    auth_token: str | None = field(default=None, repr=False)
    sealed_token: str | None = field(default=None, repr=False)
    request_id: str | None = None
    global_request_id: str | None = None
    is_admin: bool = False
    permissions: tuple[Permission, ...] | None = None

    def may_send(self, service_types: Collection[str], method: str, path: str) -> bool:
        """Whether the caller's application credential, if it has one, allows this request to a service."""
        if self.permissions is None:
            return True
        return any(each.service in service_types and each.covers(method, path) for each in self.permissions)

    @property
    def may_write(self) -> bool:
        """Whether the caller may change anything at all."""
        return self.is_admin or not self.roles.isdisjoint(WRITERS)

    @property
    def is_service(self) -> bool:
        return SERVICE in self.roles

    def of_request(self, is_admin: bool, request_id: str | None, global_request_id: str | None) -> Self:
        """The same caller in one request; `replace` is ten times slower because each field goes through `__init__`."""
        found = object.__new__(type(self))
        found.__dict__.update(
            self.__dict__, is_admin=is_admin, request_id=request_id, global_request_id=global_request_id
        )
        return found

    def elevated(self) -> 'Context':
        """This service with the rights of an administrator, on behalf of the caller."""
        roles = self.roles | {'admin', 'member', 'reader'}
        return replace(self, is_admin=True, roles=roles, auth_token=None, sealed_token=None)


ACTING: ContextVar[Context | None] = ContextVar('acting', default=None)
"""The caller that this thread works for. Only the log uses it; code that makes decisions is passed a Context."""

STEPS: ContextVar[Callable[[str], AbstractContextManager[object]]] = ContextVar('steps', default=nullcontext)
"""Wraps the named steps of the work in this thread; it does nothing unless traces are on."""


@contextmanager
def acting_for(context: Context) -> Iterator[None]:
    """Attribute what is logged in the block to that caller."""
    token = ACTING.set(context)
    try:
        yield
    finally:
        ACTING.reset(token)
