"""/events: events of the cloud, as they happen."""

import webob

from computeapi.errors import Invalid
from computeapi.kit.control.journal import COUNT, NUMBER, STATED, TEXT, parameters
from computeapi.kit.control.service import ControlController
from computeapi.kit.events.event import TYPES, EventFilter
from computeapi.kit.events.feeds import AwaitedList, EventFeed, EventLines, EventStream, Form, ServerSentEvents
from computeapi.web.contract import JSON
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, one_of, whole

LAST_EVENT_ID = 'Last-Event-ID'
MAX_NUMBER_LENGTH = 9
CHOICE = {
    'type': TEXT
    | {'description': "'server.changed', or 'server' for all events of servers; separate several with commas"},
    'project': TEXT | {'description': 'the ID of the owning project'},
    'resource': TEXT | {'description': 'the ID or the name of the resource'},
    'server': TEXT | {'description': 'the ID or the name of a server; with an ID, also events of what belongs to it'},
    'status': TEXT | {'description': 'its new status'},
}
SINCE = NUMBER | {'description': 'only events with a higher number'}
WAIT = {'type': 'string', 'pattern': '^[0-9]{1,2}$', 'description': 'how many seconds to wait if there is no event'}
STATE = {'type': ['object', 'null'], 'description': 'what has changed'}
EVENT = whole(
    {
        'id': COUNT,
        'time': {'type': 'string', 'format': 'date-time'},
        'type': one_of(*TYPES),
        **dict.fromkeys(('resource_id', 'name', 'project_id', 'server_id'), STATED),
        'before': STATE,
        'after': STATE,
    }
)


class EventHistory(ControlController):
    """Each change of the state of servers, volumes, images and so on, in the order in which they were committed."""

    path = '/events'

    @operation(
        'GET',
        policy=None,
        query=parameters({**CHOICE, 'since': SINCE, 'wait': WAIT}),
        response=whole({'events': array(EVENT), 'last': COUNT, 'lost': COUNT}),
        errors=(400, 503),
    )
    def list_events(self, req: Request) -> webob.Response:
        """List events since the last reset or restore, or stream them to clients that accept text/event-stream."""
        if ServerSentEvents.media_type in req.headers.get('Accept', ''):
            return self._stream(req, ServerSentEvents())
        events = self.tools.events
        since, wait = _since(req), int(req.parameter('wait', 0))
        feed = AwaitedList(events, _wanted(req), events.since if since is None else since, wait)
        return _answer(feed, JSON)

    @operation(
        'GET',
        '.jsonl',
        policy=None,
        query=parameters({**CHOICE, 'since': SINCE}),
        media_type=EventLines.media_type,
        errors=(400, 503),
    )
    def watch_events(self, req: Request) -> webob.Response:
        """Stream events as lines of JSON, as they happen."""
        return self._stream(req, EventLines())

    def _stream(self, req: Request, form: Form) -> webob.Response:
        since = _since(req)
        feed = EventStream(self.tools.events, _wanted(req), self.tools.events.last if since is None else since, form)
        return _answer(feed, form.media_type)


def _wanted(req: Request) -> EventFilter:
    return EventFilter(**{name: value for name in CHOICE if (value := req.parameter(name)) is not None})


def _since(req: Request) -> int | None:
    """The number of the event after which to continue. Last-Event-ID, of an interrupted stream, takes precedence."""
    last: str | None = req.headers.get(LAST_EVENT_ID) or req.parameter('since')
    if last is not None and not (last.isdecimal() and last.isascii() and len(last) <= MAX_NUMBER_LENGTH):
        raise Invalid(f'{LAST_EVENT_ID} must be the number of an event.')
    return None if last is None else int(last)


def _answer(feed: EventFeed, media_type: str) -> webob.Response:
    answer: webob.Response = webob.Response(app_iter=feed, content_type=media_type, cache_control='no-store')
    # A proxy must not buffer the response.
    answer.headers['X-Accel-Buffering'] = 'no'
    return answer
