"""The metadata service over HTTP: for guests at the metadata address, and for administrators at a URL."""

import hashlib
import hmac

import webob
import webob.dec

from computeapi.api.cloud import CloudManagers
from computeapi.compute.guest.reader import MAX_PASSWORD_LENGTH, ROOT, Document
from computeapi.context import Context
from computeapi.errors import Error, Forbidden, Invalid, NotFound
from computeapi.web import faults
from computeapi.web.request import CONTEXT

ID, PROJECT, SIGNATURE = 'X-Instance-ID', 'X-Tenant-ID', 'X-Instance-ID-Signature'


class MetadataAddress:
    """The service at 169.254.169.254, behind a proxy that adds and signs the identity of the guest.

    secret: the shared secret of the proxy's signatures.
    """

    def __init__(self, cloud: CloudManagers, secret: str):
        self.cloud, self.secret = cloud, secret.encode()

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        try:
            return answer(self.answer(req, path_of(req)))
        except Error as error:
            return faults.of(error)

    def answer(self, req: webob.Request, path: str) -> Document:
        if not path.strip('/'):
            return ROOT
        server_id, project_id = self.check(req)
        context = Context(project_id=project_id)
        server = self.cloud.servers.get(context, server_id)
        document = self.cloud.guests.read(context, server, path)
        if req.method == 'POST' and path.rstrip('/').endswith('/password'):
            self.cloud.guests.set_password(server, req.body_file.read(MAX_PASSWORD_LENGTH + 1))
            return Document(b'')
        return document

    def check(self, req: webob.Request) -> tuple[str, str]:
        """The server and its project; Invalid, Forbidden."""
        for name in (ID, SIGNATURE, PROJECT):
            if name not in req.headers:
                raise Invalid(f'{name} header is missing from request.')
        server_id: str = req.headers[ID]
        expected = hmac.new(self.secret, server_id.encode('latin-1'), hashlib.sha256).hexdigest()
        signed = hmac.compare_digest(expected.encode(), req.headers[SIGNATURE].encode('latin-1'))
        if not self.secret or not signed:
            raise Forbidden('Invalid proxy request signature.')
        return server_id, req.headers[PROJECT]


class MetadataForAdministrators:
    """/metadata/{server_id}/...: the same documents for any server."""

    def __init__(self, cloud: CloudManagers):
        self.cloud = cloud

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        try:
            context: Context = req.environ[CONTEXT]
            if not context.is_admin:
                raise Forbidden()
            server_id, _, path = path_of(req).lstrip('/').partition('/')
            return answer(self.cloud.guests.read(context, self.cloud.servers.get(context, server_id), path))
        except Error as error:
            return faults.of(error)


def path_of(req: webob.Request) -> str:
    """The raw path, because all known paths are ASCII; NotFound for a NUL, which no database can look for."""
    path: str = req.environ['PATH_INFO']
    if '\0' in path:
        raise NotFound()
    return path


def answer(document: Document) -> webob.Response:
    return webob.Response(body=document.body, content_type=document.media_type, charset='UTF-8')
