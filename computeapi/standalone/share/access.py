"""Access rules of a share: granted and denied by actions of the share, and listed."""

import ipaddress
import re
from typing import Any

from computeapi import errors
from computeapi.booleans import is_true
from computeapi.standalone.access import ADMIN, CALLER, WRITER
from computeapi.standalone.pairs import Pairs, without
from computeapi.standalone.query import mapping, truth
from computeapi.standalone.schema import having
from computeapi.standalone.share.documents import GRANTED, RULE
from computeapi.standalone.share.metadata import METADATA
from computeapi.standalone.share.service import ManilaController, added
from computeapi.standalone.share.shares import PAIRS
from computeapi.web.controller import Bounds, action, api_version, operation
from computeapi.web.request import Request

FLAG = {'type': ['boolean', 'string'], 'maxLength': 8}
ALLOW = having(
    {
        'access_type': {'enum': ['ip', 'user', 'cert', 'cephx']},
        'access_to': {'type': 'string', 'minLength': 1, 'maxLength': 255},
        'access_level': {'enum': ['rw', 'ro', None]},
        'metadata': PAIRS,
        'lock_deletion': FLAG,
        'lock_visibility': FLAG,
        'lock_reason': {'type': ['string', 'null'], 'maxLength': 1023},
    },
    'access_type',
    'access_to',
)
DENY = having({'access_id': {'type': 'string', 'maxLength': 64}, 'unrestrict': FLAG}, 'access_id')
RESIZE = having({'new_size': {'type': 'integer', 'minimum': 1, 'maximum': 2**31 - 1}}, 'new_size')
STATUS = having({'status': {'enum': ['available', 'creating', 'deleting', 'error', 'error_deleting']}}, 'status')
LOCKS = {'locks': added('2.82', True)}
ALLOWING = {**LOCKS, 'metadata': added('2.45', True)}
FILTERS = ('access_type', 'access_to', 'access_level')
# No path separators, and nothing that a shell or a directory service would treat specially.
USER = re.compile(r'[^"/\\\[\]:;|=,+*?<>]{4,255}')


class ManilaShareActions(ManilaController):
    path = '/shares'

    @action('allow_access', policy=WRITER, takes=ALLOW, status=200, behaviour=ALLOWING)
    @api_version('2.7')
    def allow(self, req: Request, id: str, body: dict[str, Any]) -> dict[str, Any]:
        check_name(body['access_type'], body['access_to'])
        given = body if req.behaviour.locks else {}
        locks = {'locked': is_true(given.get('lock_deletion')), 'hidden': is_true(given.get('lock_visibility'))}
        if given.get('lock_reason') and not any(locks.values()):
            raise errors.Invalid('lock_reason: it is the reason of lock_deletion or lock_visibility.')
        level = body.get('access_level') or 'rw'
        kind, name = body['access_type'], body['access_to']
        metadata = body.get('metadata') if req.behaviour.metadata else None
        rule = self.shares.grant(req.context, id, kind, name, level, metadata=metadata, **locks)
        return {'access': GRANTED.render(req, rule)}

    @action('deny_access', policy=WRITER, takes=DENY, behaviour=LOCKS)
    @api_version('2.7')
    def deny(self, req: Request, id: str, body: dict[str, Any]) -> None:
        unrestrict = bool(req.behaviour.locks) and is_true(body.get('unrestrict', False))
        self.shares.revoke(req.context, id, body['access_id'], unrestrict=unrestrict)

    @action('extend', policy=WRITER, takes=RESIZE, behaviour={'force': added('2.64', True)})
    @api_version('2.7')
    def extend(self, req: Request, id: str, body: dict[str, Any]) -> None:
        if req.behaviour.force and truth('force', str(body.get('force', False))):
            req.check(ADMIN)
        try:
            self.shares.resize(req.context, id, body['new_size'], grow=True)
        except errors.OverQuota as error:
            # Manila answers 413 only when a new share exceeds the quota.
            raise errors.Forbidden(str(error)) from None

    @action('shrink', policy=WRITER, takes=RESIZE)
    @api_version('2.7')
    def shrink(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.shares.resize(req.context, id, body['new_size'], grow=False)

    @action('force_delete', policy=ADMIN)
    @api_version('2.7')
    def force_delete(self, req: Request, id: str) -> None:
        self.shares.delete(req.context, id)

    @action('reset_status', policy=ADMIN, takes=STATUS)
    @api_version('2.7')
    def reset_status(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.shares.change(req.context, id, lambda share: {'status': body['status']})

    # manilaclient calls this whenever it changes anything.
    @action('reset_task_state', policy=ADMIN, takes=having({'task_state': {'enum': [None]}}, 'task_state'))
    @api_version('2.22')
    def reset_task_state(self, req: Request, id: str, body: dict[str, Any]) -> None:
        """Clear the task state, which a share never has here."""
        self.shares.get(req.context, id)

    @action('access_list', policy=CALLER, status=200)
    @api_version('2.7')
    def list_rules(self, req: Request, id: str) -> dict[str, Any]:
        return {'access_list': RULE.render_all(req, self.shares.rules(req.context, id))}


class ManilaAccessRules(ManilaController):
    path = '/share-access-rules'
    versions = Bounds('2.45')

    @operation('GET', policy=CALLER, behaviour={'filters': added('2.82', True)})
    def list(self, req: Request) -> dict[str, Any]:
        rules = self.shares.rules(req.context, req.parameter('share_id', ''))
        requested = {name: req.parameter(name) for name in FILTERS if req.behaviour.filters and req.parameter(name, '')}
        if 'access_to' in requested:
            # Looking for a name must not reveal it.
            rules = [rule for rule in rules if not rule.is_hidden_from(req.context)]
        wanted = mapping('metadata', req.parameter('metadata', '{}')).items()
        found = [rule for rule in rules if all(getattr(rule, name) == value for name, value in requested.items())]
        found = [rule for rule in found if wanted <= rule.metadata.items()]
        return {'access_list': RULE.render_all(req, found)}

    @operation('GET', '/{id}', policy=CALLER)
    def show(self, req: Request, id: str) -> dict[str, Any]:
        return {'access': RULE.render(req, self.shares.rule(req.context, id))}

    @operation('PUT', '/{id}/metadata', policy=WRITER, body=METADATA)
    def add_metadata(self, req: Request, id: str, body: dict[str, Any]) -> dict[str, Pairs]:
        rule = self.shares.change_rule(req.context, id, lambda pairs: {**pairs, **body['metadata']})
        return {'metadata': rule.metadata}

    @operation('DELETE', '/{id}/metadata/{key}', policy=WRITER)
    def remove_metadata(self, req: Request, id: str, key: str) -> None:
        missing = f'Access rule {id} has no metadata with key {key}.'
        self.shares.change_rule(req.context, id, lambda pairs: without(pairs, key, missing))


def check_name(kind: str, name: str) -> None:
    """Raises Invalid if no host, user, certificate or Ceph client can have that name."""
    if kind == 'ip':
        try:
            ipaddress.ip_network(name)
        except ValueError as error:
            raise errors.Invalid(f'access_to: {error}') from None
    elif kind == 'user' and (not USER.fullmatch(name) or not name.strip('. \t')):
        raise errors.Invalid('access_to: a user or group has 4 to 255 characters, and none of "/\\[]:;|=,+*?<>.')
    elif kind == 'cert' and not 0 < len(name.strip()) <= 64:
        raise errors.Invalid('access_to: the common name of a certificate has 1 to 64 characters.')
    elif kind == 'cephx' and not (name.isascii() and name.isprintable() and '.' not in name):
        raise errors.Invalid('access_to: a Ceph client ID consists of printable ASCII characters, without periods.')
