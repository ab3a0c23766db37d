"""The web interface at /ui/, which documents the API at each version.  It loads nothing from other sites."""

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from computeapi.web.filters import Environ, WSGIApp

if TYPE_CHECKING:
    from computeapi.main import Service

PATH = '/ui'
OWN = 'computeapi.ui.environ'
"""The environ key for the environ that the page uses: a request that a fault rule delays arrives here again."""


def beside(
    app: WSGIApp, conf: cfg.ConfigOpts, control_token: str | None = None, service: 'Service | None' = None
) -> WSGIApp:
    """The app, with the page at /ui/ if [ui] enabled is set.

    control_token: the token of the control API in the app, if there is one.  service: the service of the app, if
    it includes the identity service where users of the page log in.
    """
    return PageBeside(app, conf, control_token, service) if conf.ui.enabled else app


class PageBeside:
    """Passes everything that is not for the page to the app. The page is created on the first request for it."""

    def __init__(self, app: WSGIApp, conf: cfg.ConfigOpts, control_token: str | None, service: 'Service | None'):
        self.app, self.conf, self.control_token, self.service = app, conf, control_token, service

    @functools.cached_property
    def page(self) -> WSGIApp:
        from computeapi.ui.app import BrowserPage

        return BrowserPage(self.conf, self.app, self.control_token, self.service)

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        path = environ.get('PATH_INFO', '')
        if path != PATH and not path.startswith(f'{PATH}/'):
            return self.app(environ, start_response)
        inside = {'SCRIPT_NAME': environ.get('SCRIPT_NAME', '') + PATH, 'PATH_INFO': path[len(PATH) :]}
        return self.page(environ.setdefault(OWN, {**environ, **inside}), start_response)
