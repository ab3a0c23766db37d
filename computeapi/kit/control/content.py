"""/load and /export: the content of the cloud, as a file."""

from typing import Any

import webob

from computeapi.kit.cloud_files.document import commented
from computeapi.kit.cloud_files.exporting import export
from computeapi.kit.control.service import ControlController
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, whole

STATED = {'type': ['string', 'null']}
ACCOUNT = whole({'user': {'type': 'string'}, 'password': {'type': 'string'}, 'domain': STATED, 'project': STATED})
DOCUMENT = {'description': '@FILE in a shell; in a request the object in the file, or its text as YAML'}
LOAD = {'type': 'object', 'properties': {'document': DOCUMENT}, 'required': ['document'], 'additionalProperties': False}
HASHES = {
    'type': 'string',
    'enum': ['true', 'false'],
    'description': 'whether the hashes of passwords are included (false)',
}
EXPORT_QUERY = closed({'hashes': HASHES}) | {'single': True}


class ContentController(ControlController):
    """The contents of the cloud, as one document."""

    @operation('POST', '/load', policy=None, body=LOAD, response=whole({'accounts': array(ACCOUNT)}), errors=(400,))
    def load(self, req: Request, body: Any) -> dict[str, Any]:
        """Add the resources in a document to the cloud; the response lists the accounts that can log in."""
        found = self.tools.load(body['document'])
        return {'accounts': [{name: getattr(each, name) for name in ACCOUNT['properties']} for each in found]}

    @operation(
        'GET',
        '/export',
        policy=None,
        query=EXPORT_QUERY,
        media_type='application/yaml',
    )
    def export(self, req: Request) -> webob.Response:
        """Export the cloud as a document for `load`: everything except passwords."""
        with self.tools.paused():
            document, left_out = export(self.tools.service, hashes=req.GET.get('hashes') == 'true')
        return webob.Response(text=commented(document, left_out), content_type='application/yaml', charset='utf-8')
