"""/clock: the time that the cloud lives by."""

from typing import Any

from computeapi.clock import parsed
from computeapi.errors import Invalid
from computeapi.kit.clock import FASTEST
from computeapi.kit.control.service import ControlController
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import closed, whole

NOW = {'type': 'string', 'maxLength': 64, 'description': 'a moment in ISO 8601, in UTC where it says no zone'}
RATE = {'type': 'number', 'minimum': 0, 'maximum': FASTEST, 'description': 'seconds that pass in one; 0: it stands'}
SECONDS = {'type': 'number', 'description': 'how much later it is to be; earlier if below 0'}
CLOCK = whole({'now': NOW, 'rate': RATE})


class CloudTime(ControlController):
    """The clock of the cloud."""

    path = '/clock'

    @operation('GET', policy=None, response=CLOCK)
    def show_clock(self, req: Request) -> dict[str, Any]:
        """Show what time it is there, and how fast it goes."""
        clock = self.tools.clock
        return {'now': f'{clock().isoformat()}Z', 'rate': clock.rate}

    @operation('PUT', policy=None, body=closed({'now': NOW, 'rate': RATE}), response=CLOCK, errors=(400,))
    def set_clock(self, req: Request, body: Any) -> dict[str, Any]:
        """Set it to a moment, or to another rate, or both."""
        try:
            moment = parsed(body['now']) if 'now' in body else None
        except ValueError:
            raise Invalid(f'{body["now"]} is not a moment in ISO 8601.') from None
        self.tools.clock.change(moment=moment, rate=body.get('rate'))
        return self.show_clock(req)

    @operation('POST', '/step', policy=None, body=whole({'seconds': SECONDS}), response=CLOCK, errors=(400,))
    def step_clock(self, req: Request, body: Any) -> dict[str, Any]:
        """Let it be later."""
        self.tools.clock.step(seconds=body['seconds'])
        return self.show_clock(req)

    @operation('DELETE', policy=None, status=204)
    def reset_clock(self, req: Request) -> None:
        """Let it be right again."""
        self.tools.clock.reset()
