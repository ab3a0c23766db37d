"""/ui/session: logs users of the built-in identity in and out, and sends their requests to the cloud."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import orjson
import webob

from computeapi.clock import parsed
from computeapi.errors import DatabaseError, NotAuthenticated, Unavailable
from computeapi.kit.variables import LOOK, TOKEN_HEADER
from computeapi.serve.credentials import name_of
from computeapi.serve.http.feed import TAKEN
from computeapi.ui.change_stream import ChangeNotifier, ChangeStream
from computeapi.ui.permissions import PagePermissions
from computeapi.ui.sessions import MAX_SECONDS, LoggedIn, PageSessions
from computeapi.web.contract import JSON
from computeapi.web.filters import Environ, WSGIApp, environ_key

COOKIE = 'computeapi-page'
OWN_HEADER = 'X-Computeapi-Page'
"""Scripts of other origins cannot send this header, because the browser's preflight request gets no permission."""
LOOK_HEADER = 'X-Computeapi-Look'
"""Marks a read of the page itself, which no user requested."""
LOGIN = '/session'
RULES = '/rules'
"""Which policy rules refuse the user, for resources of `project_id` and `user_id`."""
STREAM = '/stream'
"""A stream of which servers change, if the web server supports streams."""
CLOUD = '/cloud'
"""The prefix of requests to the cloud."""
CONTROL = '/control'
"""The prefix of requests to the control API, if there is one, for administrators."""
TOKENS = '/identity/v3/auth/tokens'
FROM_WHERE = (
    *('REMOTE_ADDR', 'wsgi.url_scheme', 'HTTP_HOST', 'SERVER_NAME', 'SERVER_PORT'),
    *('HTTP_FORWARDED', 'HTTP_X_FORWARDED_FOR'),
)
"""The parts of the environ that identify where a login comes from, also through a proxy, if the cloud trusts it."""
LARGEST_LOGIN = 4096
EVENT_STREAM = 'text/event-stream'
RETRY_SECONDS = 60
ASKED = 'computeapi.ui.asked'
"""The environ key for the request to the cloud, so that the same request is sent again after a delay."""
READ = ('GET', 'HEAD')
OPEN = [
    (re.compile(r'/v2\.1(/.*)?', re.DOTALL), None),
    (re.compile(r'/networking/v2\.0/[a-z-]+(/[^/]+)?'), READ),
    (re.compile(r'/volume/v3/[^/]+/[a-z_-]+(/[^/]+)?'), READ),
    (re.compile(r'/image/v2/images(/[^/]+)?'), READ),
    (re.compile(r'/identity/v3/(projects|users)(/[^/]+)?'), READ),
]
"""What the page requests of the cloud, by path and method (None: any): nothing that returns tokens or files of users.
"""
KEPT_BACK = {
    environ_key(name)
    for name in ('Cookie', 'Authorization', 'X-Auth-Token', 'X-Service-Token', 'X-Storage-Token', TOKEN_HEADER)
}
NOT_PASSED_ON = {'set-cookie', 'x-subject-token', 'access-control-allow-origin'}


class PageLogin:
    """A WSGI app in front of the cloud's own.

    enabled: whether logging in with a password is possible.  public_url: of the service for browsers, if there is a
    proxy.  control_token: the token of the control API of the cloud, if it has one.
    permissions: for what the policy rules allow a user.
    """

    def __init__(
        self,
        cloud: WSGIApp,
        enabled: bool,
        public_url: str | None = None,
        control_token: str | None = None,
        permissions: PagePermissions | None = None,
    ):
        self.cloud, self.enabled, self.public_url, self.control_token = cloud, enabled, public_url, control_token
        self.permissions, self.sessions = permissions, PageSessions()
        self.notifier = ChangeNotifier(permissions.service.store) if permissions is not None and enabled else None

    def takes(self, path: str) -> bool:
        return path in (LOGIN, RULES, STREAM) or path.startswith((f'{CLOUD}/', f'{CONTROL}/'))

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        try:
            return self.respond(environ, start_response)
        except (DatabaseError, Unavailable) as error:
            return _refusal(503, str(error), str(RETRY_SECONDS))(environ, start_response)

    def respond(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """DatabaseError; Unavailable if there are too many streams."""
        req, path = webob.Request(environ), environ['PATH_INFO']
        if not is_from_the_page(req, self.origin(req)):
            return _refusal(403, 'Only the page itself asks this.')(environ, start_response)
        if path == LOGIN:
            return self.session(req)(environ, start_response)
        session = self.of(req)
        if session is None:
            return _refusal(401, 'Nobody is logged in.')(environ, start_response)
        if path in (RULES, STREAM):
            if req.method != 'GET':
                return _refusal(405, 'This is only to be read.')(environ, start_response)
            answer = self.rules if path == RULES else self.listen
            return answer(req, session)(environ, start_response)
        return self.forward(req, session, start_response)

    def origin(self, req: webob.Request) -> str:
        """The origin of the page, as seen by the browser."""
        return (self.public_url or req.host_url).rstrip('/')

    # ------------------------------------------------------------------ sessions

    def session(self, req: webob.Request) -> webob.Response:
        if req.method in READ:
            return self.show(req, self.of(req))
        if req.method == 'DELETE':
            return self.log_out(req)
        if req.method == 'POST' and self.enabled:
            return self.log_in(req)
        return _refusal(405, 'This cannot be done here.')

    def of(self, req: webob.Request) -> LoggedIn | None:
        """The session of the browser."""
        name = name_in(req)
        return self.sessions.get(name) if name else None

    def show(self, req: webob.Request, session: LoggedIn | None) -> webob.Response:
        known = session and {
            'user': session.user,
            'project': session.project,
            'roles': session.roles,
            'cloud': name_of(session.user),
            'control': self.controls(session),
            'stream': self.notifier is not None and bool(req.environ.get(TAKEN)),
            **self.rights(session),
        }
        return _answer({'login': self.enabled, 'session': known})

    def rights(self, session: LoggedIn) -> dict[str, Any]:
        """What the user may do in the project; derived from the roles if the policy rules are not known."""
        if self.permissions is not None:
            with suppress(NotAuthenticated):
                return self.permissions.rights(session.token)
        admin = 'admin' in session.roles
        return {'refused': [], 'all': admin, 'admin': admin}

    def log_in(self, req: webob.Request) -> webob.Response:
        """Open a new session, always with a new name."""
        given = _login_of(req)
        if given is None:
            return _refusal(400, 'A user and a password are needed, as JSON.')
        answer = self.token_for(req, *given)
        if answer.status_int != 201:
            return _refusal(answer.status_int, _reason(answer), answer.headers.get('Retry-After'))
        token = answer.json['token']
        # Use the difference, because the cloud may have another clock.
        seconds = (parsed(token['expires_at']) - parsed(token['issued_at'])).total_seconds()
        if 'project' not in token:
            return _refusal(403, 'This user has no project of their own.')
        self.sessions.close(name_in(req))
        roles = tuple(sorted(role['name'] for role in token.get('roles', ())))
        secret = answer.headers['X-Subject-Token']
        name = self.sessions.open(token['user']['name'], token['project']['name'], roles, secret, seconds)
        shown = self.show(req, self.sessions.get(name))
        self.set_cookie(shown, req, name, int(min(seconds, MAX_SECONDS)))
        return shown

    def token_for(self, req: webob.Request, user: str, password: str) -> webob.Response:
        """The response of the identity service, which counts wrong passwords by client address."""
        known = {'name': user, 'domain': {'id': 'default'}, 'password': password}
        body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': known}}}}
        asked = webob.Request.blank(TOKENS, method='POST', content_type=JSON, body=orjson.dumps(body))
        for name in FROM_WHERE:
            if name in req.environ:
                asked.environ[name] = req.environ[name]
        # The recorder replaces the input, so it must not be considered seekable.
        asked.is_body_seekable = False
        kept: webob.Request = req.environ.setdefault(ASKED, asked)
        return kept.get_response(self.cloud)

    def log_out(self, req: webob.Request) -> webob.Response:
        """Close the session and revoke its token."""
        session = self.sessions.close(name_in(req))
        if session is not None:
            headers = {'X-Auth-Token': session.token, 'X-Subject-Token': session.token}
            req.environ[ASKED] = webob.Request.blank(TOKENS, method='DELETE', headers=headers)
        if ASKED in req.environ:
            req.environ[ASKED].get_response(self.cloud)
        if self.notifier is not None:
            self.notifier.wake()
        answer = self.show(req, None)
        self.set_cookie(answer, req, '', 0)
        return answer

    def set_cookie(self, answer: webob.Response, req: webob.Request, value: str, seconds: int) -> None:
        """Set the cookie without WebOb, whose way to get the time is deprecated in newer versions of Python."""
        facts = [f'{COOKIE}={value}', f'Path={req.script_name}/', f'Max-Age={seconds}', 'HttpOnly', 'SameSite=Strict']
        if self.origin(req).startswith('https:'):
            facts.append('Secure')
        answer.headers.add('Set-Cookie', '; '.join(facts))

    # ------------------------------------------------------------------ the cloud

    def rules(self, req: webob.Request, session: LoggedIn) -> webob.Response:
        """The rules that refuse the user, for the project and user in the query, or for their own."""
        if self.permissions is None:
            return _refusal(404, 'The rules are not known here.')
        given = parse_qsl(req.query_string)
        target = {name: value for name, value in given if name in ('project_id', 'user_id')}
        try:
            return _answer(self.permissions.rights(session.token, target))
        except NotAuthenticated:
            return self.over(req)

    def over(self, req: webob.Request) -> webob.Response:
        """Close the session, because its token is not valid any more, for example after a reset."""
        self.sessions.close(name_in(req))
        return _refusal(401, 'The session is over.')

    def listen(self, req: webob.Request, session: LoggedIn) -> webob.Response:
        """Stream which servers change, of the user's project or of all, for as long as the session lasts."""
        if self.permissions is None or self.notifier is None or not req.environ.get(TAKEN):
            return _refusal(404, 'There is no stream here.')
        permissions, name = self.permissions, name_in(req)
        try:
            scope = permissions.change_scope(session.token)
            if scope is None:
                return _refusal(403, 'The servers of this project are not for this user.')

            def still() -> bool:
                with suppress(NotAuthenticated, DatabaseError):
                    return self.sessions.get(name) is not None and permissions.change_scope(session.token) == scope
                return False

            feed = ChangeStream(self.notifier, session.owner, scope, still, session.seconds_left)
        except NotAuthenticated:
            return self.over(req)
        answer = webob.Response(app_iter=feed, content_type=EVENT_STREAM, cache_control='no-store')
        # A proxy must not buffer the response.
        answer.headers['X-Accel-Buffering'] = 'no'
        return answer

    def forward(self, req: webob.Request, session: LoggedIn, start_response: Any) -> Iterable[bytes]:
        """Send a request of the user to the cloud or its control API; returns the response without secrets."""
        secret = self.secret_for(req, session)
        if secret is None:
            return _refusal(404, 'The page does not ask this of the cloud.')(req.environ, start_response)
        script, _, _ = req.script_name.rpartition('/')
        inside = {name: value for name, value in req.environ.items() if name not in KEPT_BACK}
        inside |= {'SCRIPT_NAME': script, 'PATH_INFO': inside['PATH_INFO'].removeprefix(CLOUD), **secret}
        inside[LOOK] = req.method in READ and LOOK_HEADER in req.headers

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            if status.startswith('401'):
                # The token is not valid any more, for example after a reset.
                self.sessions.close(name_in(req))
            kept = [each for each in headers if each[0].lower() not in NOT_PASSED_ON]
            return start_response(status, [*kept, ('Cache-Control', 'no-store')], exc_info)

        return self.cloud(req.environ.setdefault(ASKED, inside), start)

    def secret_for(self, req: webob.Request, session: LoggedIn) -> dict[str, str] | None:
        """The credentials for a request; None if the page may not make it."""
        # The raw path of WSGI: the cloud decides how to decode it.
        path: str = req.environ['PATH_INFO']
        if path.startswith(f'{CLOUD}/'):
            open_to_it = is_open(path.removeprefix(CLOUD), req.method)
            return {'HTTP_X_AUTH_TOKEN': session.token} if open_to_it else None
        if self.control_token is None or '..' in path or not self.controls(session):
            return None
        return {environ_key(TOKEN_HEADER): self.control_token}

    def controls(self, session: LoggedIn) -> bool:
        """Whether there is a control API, and the user may use it: they may have lost the role since the login."""
        known = self.permissions if self.control_token is not None else None
        return known is not None and known.is_administrator(session.user, session.project)


def is_from_the_page(req: webob.Request, own: str) -> bool:
    """Whether the page itself makes the request, and not another origin in the user's name: not even one at another
    port, to which the browser sends the cookie as well."""
    return (
        req.headers.get(OWN_HEADER) == '1'
        and req.headers.get('Sec-Fetch-Site', 'same-origin') == 'same-origin'
        and req.headers.get('Origin', own) == own
    )


def name_in(req: webob.Request) -> str:
    """The name of the session in the cookie, or ''. WebOb would reject all cookies if one is not UTF-8, and browsers
    send the cookies of all ports of a host."""
    for each in req.headers.get('Cookie', '').split(';'):
        name, _, value = each.strip().partition('=')
        if name == COOKIE:
            return value
    return ''


def is_open(path: str, method: str) -> bool:
    if '/../' in f'{path}/' or '//' in path:
        return False
    return any(form.fullmatch(path) and (methods is None or method in methods) for form, methods in OPEN)


def _login_of(req: webob.Request) -> tuple[str, str] | None:
    """The user and password in a request."""
    if req.content_type != JSON or not req.content_length or req.content_length > LARGEST_LOGIN:
        return None
    try:
        given = orjson.loads(req.body)
        user, password = given['user'], given['password']
    except (ValueError, TypeError, KeyError):
        return None
    return (user, password) if isinstance(user, str) and isinstance(password, str) else None


def _reason(answer: webob.Response) -> str:
    if answer.status_int == 401:
        return 'There is no such user with this password.'
    try:
        return str(answer.json['error']['message'])
    except (ValueError, TypeError, KeyError):
        return answer.status


def _answer(document: Any, status: int = 200) -> webob.Response:
    return webob.Response(body=orjson.dumps(document), status=status, content_type=JSON, cache_control='no-store')


def _refusal(status: int, text: str, retry_after: str | None = None) -> webob.Response:
    answer = _answer({'message': text}, status)
    if retry_after:
        answer.headers['Retry-After'] = retry_after
    return answer
