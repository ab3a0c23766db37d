"""What is below /ui/: the files of the page, and the documents that it shows."""

import functools

import orjson
import webob
import webob.dec
from oslo_config import cfg

from computeapi import api
from computeapi.pipeline import offered
from computeapi.ui import pages
from computeapi.ui.files import File
from computeapi.ui.reference import reference
from computeapi.web.contract import JSON

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
    """A WSGI app.  conf: says which versions are offered."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.conf = conf
        self.files = pages.files()

    @functools.cached_property
    def reference(self) -> File:
        return File(orjson.dumps(reference(api.CONTROLLERS, offered(self.conf))), JSON)

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        answer = self.answer(req)
        answer.headers.update(HEADERS.items())
        return answer

    def answer(self, req: webob.Request) -> webob.Response:
        if req.path_info == '':
            # Relative, for a proxy may know the page by another address.
            return webob.Response(status=308, headers={'Location': 'ui/'})
        file = self.reference if req.path_info == '/reference.json' else self.files.get(req.path_info)
        if file is None:
            return webob.Response(status=404, text='There is no such page.\n', content_type='text/plain')
        if req.method not in SAFE:
            return webob.Response(status=405, headers={'Allow': ', '.join(SAFE)})
        return file.answer(req)
