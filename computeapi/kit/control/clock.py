"""/clock: the clock of the cloud."""

from typing import Any

from computeapi.clock import parsed
from computeapi.errors import Invalid
from computeapi.kit.clock import FASTEST
from computeapi.kit.control.service import ControlController
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import closed, whole

NOW = {'type': 'string', 'maxLength': 64, 'description': 'a time in ISO 8601, in UTC if it has no zone'}
RATE = {
    'type': 'number',
    'minimum': 0,
    'maximum': FASTEST,
    'description': 'seconds per real second; 0: it stands still',
}
SECONDS = {'type': 'number', 'description': 'seconds to advance the clock; negative to set it back'}
CLOCK = whole({'now': NOW, 'rate': RATE})


class CloudTime(ControlController):
    """The clock of the cloud."""

    path = '/clock'

    @operation('GET', policy=None, response=CLOCK)
    def show_clock(self, req: Request) -> dict[str, Any]:
        """Show the time in the cloud, and the rate of its clock."""
        clock = self.tools.clock
        return {'now': f'{clock().isoformat()}Z', 'rate': clock.rate}

    @operation('PUT', policy=None, body=closed({'now': NOW, 'rate': RATE}), response=CLOCK, errors=(400,))
    def set_clock(self, req: Request, body: Any) -> dict[str, Any]:
        """Set the time, the rate, or both."""
        try:
            moment = parsed(body['now']) if 'now' in body else None
        except ValueError:
            raise Invalid(f'{body["now"]} is not a time in ISO 8601.') from None
        self.tools.clock.change(moment=moment, rate=body.get('rate'))
        return self.show_clock(req)

    @operation('POST', '/step', policy=None, body=whole({'seconds': SECONDS}), response=CLOCK, errors=(400,))
    def step_clock(self, req: Request, body: Any) -> dict[str, Any]:
        """Advance the clock."""
        self.tools.clock.step(seconds=body['seconds'])
        return self.show_clock(req)

    @operation('DELETE', policy=None, status=204)
    def reset_clock(self, req: Request) -> None:
        """Reset the clock to the real time and rate."""
        self.tools.clock.reset()
