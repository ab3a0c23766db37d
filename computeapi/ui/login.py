"""/ui/session: logging in with a password of the built-in identity, and out; and requests to the cloud as who did."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import orjson
import webob

from computeapi.clock import parsed
from computeapi.errors import DatabaseTrouble, NotAuthenticated, Unavailable
from computeapi.kit.variables import LOOK, TOKEN_HEADER
from computeapi.serve.credentials import name_of
from computeapi.serve.http.feed import TAKEN
from computeapi.ui.callers import PageCallers
from computeapi.ui.news import News, NewsStream
from computeapi.ui.sessions import LONGEST, LoggedIn, PageSessions
from computeapi.web.contract import JSON
from computeapi.web.filters import Environ, WSGIApp, environ_key

COOKIE = 'computeapi-page'
OWN_HEADER = 'X-Computeapi-Page'
"""Scripts of other places cannot send it: the browser would ask first whether they may, and is never told so."""
LOOK_HEADER = 'X-Computeapi-Look'
"""Says of a request that nobody asked it: the page looks what there is."""
LOGIN = '/session'
RULES = '/rules'
"""Which rules refuse who is logged in, for what is of `project_id` and `user_id`."""
NEWS = '/news'
"""A stream of which servers change, where the web server has room for streams."""
CLOUD = '/cloud'
"""What is below is asked of the cloud."""
CONTROL = '/control'
"""What is below is asked of the control API, where there is one, for administrators."""
TOKENS = '/identity/v3/auth/tokens'
FROM_WHERE = (
    *('REMOTE_ADDR', 'wsgi.url_scheme', 'HTTP_HOST', 'SERVER_NAME', 'SERVER_PORT'),
    *('HTTP_FORWARDED', 'HTTP_X_FORWARDED_FOR'),
)
"""What a login is told of the request that it comes in, also by a proxy, if the cloud believes that."""
LARGEST_LOGIN = 4096
EVENT_STREAM = 'text/event-stream'
RETRY_SECONDS = 60
ASKED = 'computeapi.ui.asked'
"""Where a request keeps what is asked of the cloud for it, so that it is that which comes again after a delay."""
READ = ('GET', 'HEAD')
OPEN = [
    (re.compile(r'/v2\.1(/.*)?', re.DOTALL), None),
    (re.compile(r'/networking/v2\.0/[a-z-]+(/[^/]+)?'), READ),
    (re.compile(r'/volume/v3/[^/]+/[a-z_-]+(/[^/]+)?'), READ),
    (re.compile(r'/image/v2/images(/[^/]+)?'), READ),
    (re.compile(r'/identity/v3/(projects|users)(/[^/]+)?'), READ),
]
"""What the page asks of the cloud, by path and method (None: any): nothing that hands out tokens or files of users."""
KEPT_BACK = {
    environ_key(name)
    for name in ('Cookie', 'Authorization', 'X-Auth-Token', 'X-Service-Token', 'X-Storage-Token', TOKEN_HEADER)
}
NOT_PASSED_ON = {'set-cookie', 'x-subject-token', 'access-control-allow-origin'}


class PageLogin:
    """A WSGI app in front of the cloud's own.

    enabled: whether passwords are looked at here at all.  public_url: what browsers know the service by, if a proxy
    stands before it.  control_token: what the control API in the cloud takes, if it has one.
    callers: tells what the rules let a user do.
    """

    def __init__(
        self,
        cloud: WSGIApp,
        enabled: bool,
        public_url: str | None = None,
        control_token: str | None = None,
        callers: PageCallers | None = None,
    ):
        self.cloud, self.enabled, self.public_url, self.control_token = cloud, enabled, public_url, control_token
        self.callers, self.sessions = callers, PageSessions()
        self.news = News(callers.service.store) if callers is not None and enabled else None

    def takes(self, path: str) -> bool:
        return path in (LOGIN, RULES, NEWS) or path.startswith((f'{CLOUD}/', f'{CONTROL}/'))

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        req, path = webob.Request(environ), environ['PATH_INFO']
        if not is_from_the_page(req, self.origin(req)):
            return _refusal(403, 'Only the page itself asks this.')(environ, start_response)
        if path == LOGIN:
            return self.session(req)(environ, start_response)
        session = self.of(req)
        if session is None:
            return _refusal(401, 'Nobody is logged in.')(environ, start_response)
        if path in (RULES, NEWS):
            if req.method != 'GET':
                return _refusal(405, 'This is only to be read.')(environ, start_response)
            answer = self.rules if path == RULES else self.listen
            return answer(req, session)(environ, start_response)
        return self.ask(req, session, start_response)

    def origin(self, req: webob.Request) -> str:
        """Where the page is, as the browser calls it."""
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
        """The session that the browser is in."""
        name = name_in(req)
        return self.sessions.get(name) if name else None

    def show(self, req: webob.Request, session: LoggedIn | None) -> webob.Response:
        known = session and {
            'user': session.user,
            'project': session.project,
            'roles': session.roles,
            'cloud': name_of(session.user),
            'control': self.controls(session),
            'news': self.news is not None and bool(req.environ.get(TAKEN)),
            **self.rights(session),
        }
        return _answer({'login': self.enabled, 'session': known})

    def rights(self, session: LoggedIn) -> dict[str, Any]:
        """What the user may do in the project; what follows from the roles alone, where the rules are not known."""
        if self.callers is not None:
            with suppress(NotAuthenticated):
                return self.callers.rights(session.token)
        admin = 'admin' in session.roles
        return {'refused': [], 'all': admin, 'admin': admin}

    def log_in(self, req: webob.Request) -> webob.Response:
        """A new session, never one whose name the browser had before."""
        given = _login_of(req)
        if given is None:
            return _refusal(400, 'A user and a password are needed, as JSON.')
        answer = self.token_for(req, *given)
        if answer.status_int != 201:
            return _refusal(answer.status_int, _reason(answer), answer.headers.get('Retry-After'))
        token = answer.json['token']
        # The clock of the cloud may be another one.
        seconds = (parsed(token['expires_at']) - parsed(token['issued_at'])).total_seconds()
        if 'project' not in token:
            return _refusal(403, 'This user has no project of their own.')
        self.sessions.close(name_in(req))
        roles = tuple(sorted(role['name'] for role in token.get('roles', ())))
        secret = answer.headers['X-Subject-Token']
        name = self.sessions.open(token['user']['name'], token['project']['name'], roles, secret, seconds)
        shown = self.show(req, self.sessions.get(name))
        self.set_cookie(shown, req, name, int(min(seconds, LONGEST)))
        return shown

    def token_for(self, req: webob.Request, user: str, password: str) -> webob.Response:
        """What the identity service says to them; it counts wrong passwords by the address that they come from."""
        known = {'name': user, 'domain': {'id': 'default'}, 'password': password}
        body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': known}}}}
        asked = webob.Request.blank(TOKENS, method='POST', content_type=JSON, body=orjson.dumps(body))
        for name in FROM_WHERE:
            if name in req.environ:
                asked.environ[name] = req.environ[name]
        # Who records requests puts something in the place of the body that is read once.
        asked.is_body_seekable = False
        kept: webob.Request = req.environ.setdefault(ASKED, asked)
        return kept.get_response(self.cloud)

    def log_out(self, req: webob.Request) -> webob.Response:
        """The token is revoked, too."""
        session = self.sessions.close(name_in(req))
        if session is not None:
            headers = {'X-Auth-Token': session.token, 'X-Subject-Token': session.token}
            req.environ[ASKED] = webob.Request.blank(TOKENS, method='DELETE', headers=headers)
        if ASKED in req.environ:
            req.environ[ASKED].get_response(self.cloud)
        if self.news is not None:
            self.news.rouse()
        answer = self.show(req, None)
        self.set_cookie(answer, req, '', 0)
        return answer

    def set_cookie(self, answer: webob.Response, req: webob.Request, value: str, seconds: int) -> None:
        """Not as WebOb does it, which asks for the time in a way that newer Pythons warn of."""
        facts = [f'{COOKIE}={value}', f'Path={req.script_name}/', f'Max-Age={seconds}', 'HttpOnly', 'SameSite=Strict']
        if self.origin(req).startswith('https:'):
            facts.append('Secure')
        answer.headers.add('Set-Cookie', '; '.join(facts))

    # ------------------------------------------------------------------ the cloud

    def rules(self, req: webob.Request, session: LoggedIn) -> webob.Response:
        """Those that refuse the user, for what is of a project and a user that the query names, or their own."""
        if self.callers is None:
            return _refusal(404, 'The rules are not known here.')
        given = parse_qsl(req.query_string)
        target = {name: value for name, value in given if name in ('project_id', 'user_id')}
        try:
            return _answer(self.callers.rights(session.token, target))
        except NotAuthenticated:
            return self.over(req)

    def over(self, req: webob.Request) -> webob.Response:
        """The token is worth nothing any more, such as after a reset."""
        self.sessions.close(name_in(req))
        return _refusal(401, 'The session is over.')

    def listen(self, req: webob.Request, session: LoggedIn) -> webob.Response:
        """Tell which servers change, of the user's project or of all, for as long as the session lasts."""
        if self.callers is None or self.news is None or not req.environ.get(TAKEN):
            return _refusal(404, 'There is no stream here.')
        callers, name = self.callers, name_in(req)
        try:
            hears = callers.hears(session.token)
            if hears is None:
                return _refusal(403, 'The servers of this project are not for this user.')

            def still() -> bool:
                with suppress(NotAuthenticated, DatabaseTrouble):
                    return self.sessions.get(name) is not None and callers.hears(session.token) == hears
                return False

            feed = NewsStream(self.news, session.owner, hears, still, session.seconds_left)
        except NotAuthenticated:
            return self.over(req)
        except Unavailable as error:
            return _refusal(503, str(error), str(RETRY_SECONDS))
        answer = webob.Response(app_iter=feed, content_type=EVENT_STREAM, cache_control='no-store')
        # A proxy is not to wait for more than there is to pass on.
        answer.headers['X-Accel-Buffering'] = 'no'
        return answer

    def ask(self, req: webob.Request, session: LoggedIn, start_response: Any) -> Iterable[bytes]:
        """Ask the cloud, or its control API, as who is logged in; what it answers, but for secrets."""
        secret = self.secret_for(req, session)
        if secret is None:
            return _refusal(404, 'The page does not ask this of the cloud.')(req.environ, start_response)
        script, _, _ = req.script_name.rpartition('/')
        inside = {name: value for name, value in req.environ.items() if name not in KEPT_BACK}
        inside |= {'SCRIPT_NAME': script, 'PATH_INFO': inside['PATH_INFO'].removeprefix(CLOUD), **secret}
        inside[LOOK] = req.method in READ and LOOK_HEADER in req.headers

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            if status.startswith('401'):
                # A token that is worth nothing any more, such as after a reset.
                self.sessions.close(name_in(req))
            kept = [each for each in headers if each[0].lower() not in NOT_PASSED_ON]
            return start_response(status, [*kept, ('Cache-Control', 'no-store')], exc_info)

        return self.cloud(req.environ.setdefault(ASKED, inside), start)

    def secret_for(self, req: webob.Request, session: LoggedIn) -> dict[str, str] | None:
        """What a request is let in with; None for one that is not the page's to make."""
        # As it came, as WSGI has it: the cloud says what it is worth as text.
        path: str = req.environ['PATH_INFO']
        if path.startswith(f'{CLOUD}/'):
            open_to_it = is_open(path.removeprefix(CLOUD), req.method)
            return {'HTTP_X_AUTH_TOKEN': session.token} if open_to_it else None
        if self.control_token is None or not self.controls(session) or '..' in path:
            return None
        return {environ_key(TOKEN_HEADER): self.control_token}

    def controls(self, session: LoggedIn) -> bool:
        """Whether the control API is there, and for this user."""
        return self.control_token is not None and 'admin' in session.roles


def is_from_the_page(req: webob.Request, own: str) -> bool:
    """Whether the page itself asks, and no other place in its user's name: also none at another port, which a cookie
    would be sent with."""
    return (
        req.headers.get(OWN_HEADER) == '1'
        and req.headers.get('Sec-Fetch-Site', 'same-origin') == 'same-origin'
        and req.headers.get('Origin', own) == own
    )


def name_in(req: webob.Request) -> str:
    """That of the session, or ''. WebOb would refuse all cookies where one is no UTF-8, and a browser has one jar for
    all ports of a machine."""
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
    """The user and the password that somebody sent."""
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
