"""Messages that tell users why a request failed later on."""

from collections.abc import Iterable
from typing import Any

from computeapi.backends.volume.local.messages import Message
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.fields import each, read, time
from computeapi.standalone.volume.documents import links_to
from computeapi.standalone.volume.lists import MESSAGE_FILTERS, CinderCollection, window
from computeapi.web.contract import View
from computeapi.web.controller import Bounds, operation
from computeapi.web.request import Request

MESSAGE = View(
    {
        **each('id', 'event_id', 'user_message', 'message_level', 'resource_type', 'resource_uuid', 'request_id'),
        'created_at': read(lambda message: time(message.created_at)),
        'guaranteed_until': read(lambda message: time(message.guaranteed_until)),
        'links': links_to('messages'),
    }
)


class CinderMessages(CinderCollection):
    path = '/messages'
    versions = Bounds('3.3')
    noun, summary, detail, filters = 'messages', MESSAGE, MESSAGE, MESSAGE_FILTERS
    counted = False

    def found(self, req: Request, **options: Any) -> Iterable[Message]:
        return self.volumes.messages.list(req.context, **window(req), **options)

    @operation('GET', '/{message_id}', policy=CALLER)
    def show(self, req: Request, message_id: str) -> dict[str, Any]:
        return {'message': MESSAGE.render(req, self.volumes.messages.get(req.context, message_id))}

    @operation('DELETE', '/{message_id}', policy=WRITER, status=204)
    def delete(self, req: Request, message_id: str) -> None:
        self.volumes.messages.delete(req.context, message_id)
