"""Serves /ui/: the files of the page, the documents that it shows, and its requests to the cloud."""

import functools
from collections.abc import Iterable
from typing import Any

import orjson
import webob
from oslo_config import cfg

from computeapi import api
from computeapi.main import Service
from computeapi.pipeline import offered
from computeapi.ui import pages
from computeapi.ui.files import File
from computeapi.ui.login import PageLogin
from computeapi.ui.permissions import PagePermissions
from computeapi.ui.reference import reference
from computeapi.ui.requirements import requirements
from computeapi.web.contract import JSON
from computeapi.web.filters import Environ, Headers, WSGIApp

SAFE = ('GET', 'HEAD')
POLICY = '; '.join(
    [
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ('script', 'style', 'img', 'connect')),
        *(f"{what} 'none'" for what in ('base-uri', 'form-action', 'frame-ancestors')),
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
HEADERS = {
    'Content-Security-Policy': POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
}


class BrowserPage:
    """A WSGI app.  conf: determines which versions are offered, and how users log in.  cloud: the app for everything
    else.

    service: for the policy rules and the changes of that cloud; without it, nobody can log in.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, cloud: WSGIApp, control_token: str | None = None, service: Service | None = None
    ):
        self.conf = conf
        self.files = pages.files()
        own = conf.api.auth_strategy == 'local' and conf.identity.backend == 'local'
        permissions = None if service is None else PagePermissions(service)
        self.login = PageLogin(cloud, own and service is not None, conf.api.public_url, control_token, permissions)

    @functools.cached_property
    def reference(self) -> File:
        return File(orjson.dumps(reference(api.CONTROLLERS, offered(self.conf))), JSON)

    @functools.cached_property
    def requirements(self) -> File:
        return File(orjson.dumps(requirements()), JSON)

    def file(self, path: str) -> File | None:
        """The file at a path; documents are created on the first request."""
        made = {'/reference.json': lambda: self.reference, '/requirements.json': lambda: self.requirements}
        return made[path]() if path in made else self.files.get(path)

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            return start_response(status, [*headers, *HEADERS.items()], exc_info)

        if self.login.takes(environ['PATH_INFO']):
            return self.login(environ, start)
        return self.answer(webob.Request(environ))(environ, start)

    def answer(self, req: webob.Request) -> webob.Response:
        path = req.environ['PATH_INFO']
        if path == '':
            # Relative, because a proxy may have another URL for the page.
            return webob.Response(status=308, headers={'Location': 'ui/'})
        file = self.file(path)
        if file is None:
            return webob.Response(status=404, text='There is no such page.\n', content_type='text/plain')
        if req.method not in SAFE:
            return webob.Response(status=405, headers={'Allow': ', '.join(SAFE)})
        return file.answer(req)
