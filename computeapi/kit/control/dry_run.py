"""/dry-run: what a request for servers would do."""

from typing import Any

from computeapi.errors import Invalid
from computeapi.kit.control.service import ControlController
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, whole

NAME = {'type': 'string', 'minLength': 1, 'maxLength': 255}
TEXT = {'type': ['string', 'null']}
NAMES = array(NAME)
NUMBER = {'type': 'number'}
OBJECT = {'type': 'object'}
REQUEST = closed(
    {
        'server': OBJECT | {'description': 'the server in the body of POST /servers, or the whole body'},
        'scheduler_hints': OBJECT | {'description': 'the scheduler hints of the body'},
        'microversion': {'type': 'string', 'description': 'the microversion of the request (latest)'},
        'user': NAME | {'description': 'the name of the user that sends the request (admin)'},
        'project': NAME | {'description': 'the name of the project of the request (that of the user)'},
    },
    required=['server'],
)
FILTER = whole({'filter': TEXT, 'passed': NAMES, 'refused': NAMES, 'reason': TEXT})
ROOM = whole({'host': NAME, 'free_vcpus': NUMBER, 'free_memory_mb': NUMBER, 'free_disk_gb': NUMBER})
SERVER = whole(
    {
        'name': NAME,
        'host': TEXT,
        'message': TEXT,
        'needs': whole({'vcpus': NUMBER, 'memory_mb': NUMBER, 'disk_gb': NUMBER}),
        'filters': array(FILTER),
        'candidates': array(ROOM),
        'full': NAMES,
    }
)
OUTCOME = whole(
    {
        'possible': {'type': 'boolean'},
        'status': {'type': 'integer'},
        'message': TEXT,
        'servers': array(SERVER),
    }
)


class DryRuns(ControlController):
    """The predicted outcome of a request."""

    path = '/dry-run'

    @operation('POST', policy=None, body=REQUEST, response=OUTCOME, errors=(401, 404))
    def dry_run(self, req: Request, body: Any) -> dict[str, Any]:
        """Predict the response of POST /servers, and show which hosts each filter passes; nothing is created."""
        server = body['server']
        requested = dict(server) if isinstance(server.get('server'), dict) else {'server': server}
        if 'scheduler_hints' in body:
            requested['os:scheduler_hints'] = body['scheduler_hints']
        who = {name: body[name] for name in ('microversion', 'user', 'project') if name in body}
        try:
            return self.tools.dry_run.create_server(requested, **who)
        except ValueError as error:
            raise Invalid(str(error)) from None
