"""/webhooks: where events are sent."""

from typing import Any

from computeapi.kit.control.events import CHOICE
from computeapi.kit.control.journal import COUNT
from computeapi.kit.control.service import NUMBER, ControlController, number
from computeapi.kit.events.event import NOUNS, TYPES
from computeapi.kit.webhooks.destinations import MAX_URL_LENGTH
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, one_of

URL = {
    'type': 'string',
    'maxLength': MAX_URL_LENGTH,
    'description': 'HTTP or HTTPS, on the loopback or in an allowed network',
}
SECRET = {'type': 'string', 'maxLength': 255, 'description': 'whsec_ followed by 24 to 64 bytes in base64'}
TYPE_LIST = {'type': 'array', 'items': one_of(*NOUNS, *TYPES), 'uniqueItems': True}
STATED = {'type': ['string', 'null']}
OWNERS = {'project': CHOICE['project'], 'server': CHOICE['server']}
WEBHOOK = closed(
    {
        'id': NUMBER,
        'url': URL,
        'types': TYPE_LIST,
        **dict.fromkeys(('project', 'resource', 'server', 'last_error'), STATED),
        **dict.fromkeys(('deliveries', 'failures', 'given_up', 'lost'), COUNT),
        'last_status': {'type': ['integer', 'null']},
        'secret': SECRET,
    },
    ['id', 'url', 'types', 'deliveries', 'failures', 'given_up', 'lost', 'last_status', 'last_error'],
)


class EventWebhooks(ControlController):
    """URLs to which events are sent, one after the other, with a signature."""

    path = '/webhooks'

    @operation('GET', policy=None, response=lone('webhooks', array(WEBHOOK)))
    def list_webhooks(self, req: Request) -> dict[str, Any]:
        """List the webhooks with their successful and failed deliveries, oldest first."""
        return {'webhooks': [hook.document() for hook in self.tools.webhooks.list()]}

    @operation(
        'POST',
        policy=None,
        body=closed({'url': URL, 'secret': SECRET, 'types': TYPE_LIST, **OWNERS}, ['url']),
        response=WEBHOOK,
        status=201,
        errors=(400, 503),
    )
    def add_webhook(self, req: Request, body: Any) -> dict[str, Any]:
        """Add a webhook; a generated secret is shown only in this response."""
        hook = self.tools.webhooks.add(**body)
        return hook.document() | ({} if 'secret' in body else {'secret': hook.secret})

    @operation('DELETE', policy=None, status=204)
    def clear_webhooks(self, req: Request) -> None:
        """Remove all webhooks."""
        self.tools.webhooks.clear()

    @operation('GET', '/{webhook_id}', policy=None, response=WEBHOOK)
    def show_webhook(self, req: Request, webhook_id: str) -> dict[str, Any]:
        """Show a webhook with its successful and failed deliveries."""
        return self.tools.webhooks.get(number(webhook_id)).document()

    @operation('DELETE', '/{webhook_id}', policy=None, status=204)
    def remove_webhook(self, req: Request, webhook_id: str) -> None:
        """Remove a webhook; pending events are not sent to it any more."""
        self.tools.webhooks.get(number(webhook_id)).remove()
