"""The page for people, at /ui/: what the API is at each version.  All that a browser needs comes with the package."""

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from computeapi.web.filters import Environ, WSGIApp

if TYPE_CHECKING:
    from computeapi.main import Service

PATH = '/ui'
OWN = 'computeapi.ui.environ'
"""Where a request keeps the environment that the page has it in: it comes again where a rule of the kit delays it."""


def beside(
    app: WSGIApp, conf: cfg.ConfigOpts, control_token: str | None = None, service: 'Service | None' = None
) -> WSGIApp:
    """The app, and the page at /ui/ if [ui] enabled asks for it.

    control_token: what the control API takes that is in the app, if it is.  service: what the app is one of."""
    return PageBeside(app, conf, control_token, service) if conf.ui.enabled else app


class PageBeside:
    """Passes on to the app all that is not for the page, which is made when somebody first asks for it."""

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
