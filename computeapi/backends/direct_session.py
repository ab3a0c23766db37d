"""Sends keystoneauth's requests without what they do not use."""

import functools
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

BODILESS = frozenset({'GET', 'HEAD', 'DELETE'})


class DirectSession(requests.Session):
    """Sends each request with the headers that it is given, and no others.

    requests would also look for cookies and for a ~/.netrc, and read proxies and certificates from the environment each
    time, which takes as long as everything else. The environment is read once for each host.

    adapters: they send the requests, by the beginnings of URLs.
    """

    def __init__(self, adapters: MutableMapping[str, BaseAdapter]):
        super().__init__()
        self.adapters = adapters
        self.settings = functools.lru_cache(maxsize=64)(self._settings)

    def request(  # type: ignore[override]
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        data: Any = None,
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        stream: bool = False,
        verify: bool | str | None = None,
        cert: Any = None,
        allow_redirects: bool = False,
    ) -> requests.Response:
        """The response, even if it is a redirection: keystoneauth follows them itself."""
        prepared = requests.PreparedRequest()
        prepared.method, prepared.url = method, with_query(url, params)
        prepared.headers = CaseInsensitiveDict(headers)
        if data is not None or method not in BODILESS:
            prepared.prepare_body(data, None)
        settings = self.settings(urlsplit(url)[:2], stream, verify, cert)
        response = self.get_adapter(url).send(prepared, timeout=timeout, **settings)
        if not stream:
            # Reads the body, and so releases the connection.
            _ = response.content
        return response

    def _settings(self, root: tuple[str, str], stream: bool, verify: bool | str | None, cert: Any) -> dict[str, Any]:
        """Also the proxies and certificates in the environment."""
        return {**self.merge_environment_settings('://'.join(root), {}, stream, verify, cert)}


def with_query(url: str, params: Mapping[str, Any] | None) -> str:
    """The URL with these parameters; those that are None are left out."""
    query = urlencode({name: value for name, value in (params or {}).items() if value is not None}, doseq=True)
    return f'{url}{"&" if "?" in url else "?"}{query}' if query else url
