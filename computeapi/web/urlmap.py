"""Which app a path goes to.

Keys are prefixes; `/v2.1/+` is what stands below /v2.1 when there is something below it. When no
version stands in the path, a version in Accept or Content-Type (;version=2.1) chooses the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from computeapi.web.filters import WSGIApp

VERSION = re.compile(r';\s*version=(2(?:\.\d+)?)\b')


class URLMap:
    def __init__(self, apps: dict[str, WSGIApp]):
        self.default = apps.pop('/')
        self.below = {path[:-2]: app for path, app in apps.items() if path.endswith('/+')}
        self.exact = {path: app for path, app in apps.items() if not path.endswith('/+')}
        self.prefixes = sorted(self.exact | self.below, key=len, reverse=True)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get('PATH_INFO', '')
        for prefix in self.prefixes:
            if path == prefix or path.startswith(prefix + '/'):
                rest = path[len(prefix) :]
                app = self.below.get(prefix) if len(rest) > 1 else None
                app = app or self.exact.get(prefix) or self.below[prefix]
                environ['SCRIPT_NAME'] = environ.get('SCRIPT_NAME', '') + prefix
                environ['PATH_INFO'] = rest
                return app(environ, start_response)
        app = self.by_media_type(environ) or self.default
        return app(environ, start_response)

    def by_media_type(self, environ: dict[str, Any]) -> WSGIApp | None:
        for name in ('HTTP_ACCEPT', 'CONTENT_TYPE'):
            match = VERSION.search(environ.get(name) or '')
            prefix = match and f'/v{match[1]}'
            if prefix in self.exact and prefix in self.below:
                environ['SCRIPT_NAME'] = environ.get('SCRIPT_NAME', '') + prefix
                environ['PATH_INFO'] = ''
                return self.exact[prefix]
        return None
