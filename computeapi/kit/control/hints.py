"""/hints: hints about versions that clients were given."""

from typing import Any

from computeapi.kit.control.service import ControlController
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, lone, whole

STRING = {'type': 'string'}
HINT = whole({'operation': STRING, 'text': STRING, 'times': {'type': 'integer'}})
ON = {'type': 'boolean'}
STATE = lone('on', ON)


class GivenHints(ControlController):
    """Hints about names that other versions know, and about what was ignored."""

    path = '/hints'

    @operation('GET', policy=None, response=whole({'on': ON, 'hints': array(HINT)}))
    def list_hints(self, req: Request) -> dict[str, Any]:
        """List the hints given since the start or the last reset, and whether hints are enabled."""
        return {'on': self.tools.hints.on, 'hints': [hint._asdict() for hint in self.tools.hints.given]}

    @operation('PUT', policy=None, body=STATE, response=STATE)
    def switch_hints(self, req: Request, body: Any) -> dict[str, Any]:
        """Enable or disable hints."""
        self.tools.hints.on = body['on']
        return {'on': self.tools.hints.on}
