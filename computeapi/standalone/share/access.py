"""Access rules of a share: granted and denied by actions of the share, and listed."""

from typing import Any

from computeapi.booleans import spoken
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.schema import having
from computeapi.standalone.share.documents import RULE
from computeapi.standalone.share.service import ManilaController, added
from computeapi.web.controller import Bounds, action, api_version, operation
from computeapi.web.request import Request

FLAG = {'type': ['boolean', 'string'], 'maxLength': 8}
ALLOW = having(
    {
        'access_type': {'enum': ['ip', 'user', 'cert', 'cephx']},
        'access_to': {'type': 'string', 'minLength': 1, 'maxLength': 255},
        'access_level': {'enum': ['rw', 'ro', None]},
        'lock_deletion': FLAG,
    },
    'access_type',
    'access_to',
)
DENY = having({'access_id': {'type': 'string', 'maxLength': 64}, 'unrestrict': FLAG}, 'access_id')
LOCKS = {'locks': added('2.82', True)}


class ManilaShareActions(ManilaController):
    path = '/shares'

    @action('allow_access', policy=WRITER, takes=ALLOW, status=200, behaviour=LOCKS)
    @api_version('2.7')
    def allow(self, req: Request, id: str, body: dict[str, Any]) -> dict[str, Any]:
        locked = bool(req.behaviour.locks) and spoken(body.get('lock_deletion', False))
        level = body.get('access_level') or 'rw'
        rule = self.shares.grant(req.context, id, body['access_type'], body['access_to'], level, locked=locked)
        return {'access': RULE.render(req, rule)}

    @action('deny_access', policy=WRITER, takes=DENY, behaviour=LOCKS)
    @api_version('2.7')
    def deny(self, req: Request, id: str, body: dict[str, Any]) -> None:
        unrestrict = bool(req.behaviour.locks) and spoken(body.get('unrestrict', False))
        self.shares.revoke(req.context, id, body['access_id'], unrestrict=unrestrict)

    @action('access_list', policy=CALLER, status=200)
    @api_version('2.7')
    def list_rules(self, req: Request, id: str) -> dict[str, Any]:
        return {'access_list': RULE.render_all(req, self.shares.rules(req.context, id))}


class ManilaAccessRules(ManilaController):
    path = '/share-access-rules'
    versions = Bounds('2.45')

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        return {'access_list': RULE.render_all(req, self.shares.rules(req.context, req.parameter('share_id', '')))}

    @operation('GET', '/{id}', policy=CALLER)
    def show(self, req: Request, id: str) -> dict[str, Any]:
        return {'access': RULE.render(req, self.shares.rule(req.context, id))}
