"""Files that a browser caches and revalidates before each use."""

import functools
import gzip
import hashlib

import webob


class File:
    """Some bytes, with an ETag that depends only on them."""

    def __init__(self, body: bytes, media_type: str):
        self.body, self.media_type = body, media_type
        self.tag = hashlib.sha256(body).hexdigest()[:32]

    @functools.cached_property
    def compressed(self) -> bytes:
        return gzip.compress(self.body, mtime=0)

    def answer(self, req: webob.Request) -> webob.Response:
        """200, or 304 if the browser has the file; compressed if it accepts that."""
        # Without the header, WebOb would assume that anything is accepted.
        zipped = bool(req.accept_encoding and req.accept_encoding.acceptable_offers(['gzip']))
        answer = webob.Response(
            body=self.compressed if zipped else self.body,
            headerlist=[('Content-Type', self.media_type)],
            # The two encodings of a file need different ETags.
            etag=f'{self.tag}-gzip' if zipped else self.tag,
            cache_control='no-cache',
            vary=['Accept-Encoding'],
            conditional_response=True,
        )
        if zipped:
            answer.content_encoding = 'gzip'
        return answer
