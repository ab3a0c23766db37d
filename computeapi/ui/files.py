"""What a browser keeps, and asks about again before it shows it."""

import functools
import gzip
import hashlib

import webob


class File:
    """Some bytes; their ETag changes with them, and not otherwise."""

    def __init__(self, body: bytes, media_type: str):
        self.body, self.media_type = body, media_type
        self.tag = hashlib.sha256(body).hexdigest()[:32]

    @functools.cached_property
    def compressed(self) -> bytes:
        return gzip.compress(self.body, mtime=0)

    def answer(self, req: webob.Request) -> webob.Response:
        """200, or 304 to who has it; compressed for who takes that."""
        # Who says nothing would take anything.
        zipped = bool(req.accept_encoding and req.accept_encoding.acceptable_offers(['gzip']))
        answer = webob.Response(
            body=self.compressed if zipped else self.body,
            headerlist=[('Content-Type', self.media_type)],
            # Two forms of one file are not the same bytes.
            etag=f'{self.tag}-gzip' if zipped else self.tag,
            cache_control='no-cache',
            vary=['Accept-Encoding'],
            conditional_response=True,
        )
        if zipped:
            answer.content_encoding = 'gzip'
        return answer
