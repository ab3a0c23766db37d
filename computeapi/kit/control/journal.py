"""/journal: the requests to the cloud."""

from typing import Any

import webob

from computeapi.kit.control.service import ControlController
from computeapi.kit.journal.entry import Entry
from computeapi.kit.operations import SERVICES
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, one_of, whole

TEXT = {'type': 'string', 'minLength': 1, 'maxLength': 255}
NUMBER = {'type': 'string', 'pattern': '^[0-9]{1,9}$'}
COUNT = {'type': 'integer', 'minimum': 0}
SERVICE = one_of(*SERVICES)
TESTS = {
    'operation': TEXT | {'description': "such as 'POST /servers' or 'POST /servers/{id}/action os-stop'"},
    'service': SERVICE,
    'method': TEXT,
    'path': TEXT | {'description': 'a part of the path'},
    'status': NUMBER,
    'user': TEXT | {'description': 'the ID or the name of the caller'},
    'project': TEXT | {'description': "the ID or the name of the caller's project"},
    'since': NUMBER | {'description': 'only entries with a higher number'},
}
STATED = {'type': ['string', 'null']}
MESSAGE = whole({'headers': {'type': 'object'}, 'body': {}, 'length': COUNT})
ENTRY = whole(
    {
        'number': COUNT,
        'time': {'type': 'string', 'format': 'date-time'},
        'duration': {'type': 'number', 'description': 'in seconds'},
        **{name: {'type': 'string'} for name in ('method', 'path', 'query')},
        **dict.fromkeys(('service', 'operation', 'microversion_asked', 'microversion_used', 'user'), STATED),
        **dict.fromkeys(('project', 'user_name', 'project_name'), STATED),
        'request': MESSAGE,
        'status': {'type': ['integer', 'null']},
        'response': MESSAGE,
        'error': STATED | {'description': 'the kind of error, if there was no response'},
    }
)
SUMMARY = dict.fromkeys(('used', 'of', 'steps_used', 'steps'), COUNT)
COVERED = whole(
    {
        'operation': {'type': 'string'},
        'requests': COUNT,
        'microversions': array({'type': 'string'}),
        'statuses': array(COUNT),
        'steps': COUNT,
        'steps_used': COUNT,
    }
)
RESOURCE = whole({'resource': {'type': 'string'}, **SUMMARY, 'covered': array(COVERED)})
FINDING = whole(
    {'kind': one_of('repeated', 'polling', 'n_plus_1'), 'message': {'type': 'string'}, 'entries': array(COUNT)}
)


def parameters(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a query string with these parameters, each at most once."""
    return closed(properties) | {'single': True}


class RequestJournal(ControlController):
    """Requests and answers of all services of the cloud; secrets in them are masked."""

    path = '/journal'

    @operation(
        'GET',
        policy=None,
        query=parameters(TESTS),
        response=whole({'entries': array(ENTRY), 'count': COUNT, 'forgotten': COUNT}),
    )
    def list_requests(self, req: Request) -> dict[str, Any]:
        """List matching requests, oldest first, and how many requests were dropped for lack of room."""
        found = self._chosen(req)
        entries = [each.document() for each in found]
        return {'entries': entries, 'count': len(found), 'forgotten': self.tools.journal.forgotten}

    @operation('DELETE', policy=None, status=204)
    def clear_journal(self, req: Request) -> None:
        """Delete all recorded requests."""
        self.tools.journal.clear()

    @operation('GET', '.jsonl', policy=None, query=parameters(TESTS), media_type='application/jsonl')
    def export_journal(self, req: Request) -> webob.Response:
        """Export requests as lines of JSON, for `computeapi replay`."""
        data = self.tools.journal.lines(self._chosen(req))
        return webob.Response(body=data, content_type='application/jsonl')

    @operation('GET', '.har', policy=None, query=parameters(TESTS), response={'type': 'object'})
    def export_archive(self, req: Request) -> dict[str, Any]:
        """Export requests as an HTTP Archive 1.2."""
        return self.tools.journal.har(self._chosen(req))

    @operation(
        'GET',
        '/coverage',
        policy=None,
        query=parameters({'service': SERVICE}),
        response=whole({'service': SERVICE, **SUMMARY, 'resources': array(RESOURCE)}),
    )
    def show_coverage(self, req: Request) -> dict[str, Any]:
        """Show which operations of a service were used, and at which versions (by default, of compute)."""
        return self.tools.journal.coverage(req.parameter('service', 'compute')).document()

    @operation('GET', '/coverage.txt', policy=None, query=parameters({'service': SERVICE}), media_type='text/plain')
    def print_coverage(self, req: Request) -> webob.Response:
        """Show the same as text."""
        return webob.Response(
            text=f'{self.tools.journal.coverage(req.parameter("service", "compute"))}\n', content_type='text/plain'
        )

    @operation(
        'GET',
        '/findings',
        policy=None,
        query=parameters({'repeats': NUMBER | {'description': 'how often a request may be repeated (3)'}}),
        response=whole({'findings': array(FINDING)}),
    )
    def list_findings(self, req: Request) -> dict[str, Any]:
        """List avoidable requests: repeated ones, one per member of a list, and excessive polling."""
        findings = self.tools.journal.findings(int(req.parameter('repeats', 3)))
        return {'findings': [each._asdict() for each in findings]}

    def _chosen(self, req: Request) -> list[Entry]:
        return self.tools.journal.entries(**{name: req.parameter(name) for name in TESTS})
