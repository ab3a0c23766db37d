"""/plans: how long states last."""

from typing import Any

from computeapi.kit.control.service import NUMBER, ControlController, number
from computeapi.kit.plans import FACTS
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone

PLAN = closed({'id': NUMBER, **FACTS['properties']}, ['id'])
SERVER = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'description': 'its name or its ID; default: all servers'}


class StatePlans(ControlController):
    """How long transitional states of servers last."""

    path = '/plans'

    @operation('GET', policy=None, response=lone('plans', array(PLAN)))
    def list_plans(self, req: Request) -> dict[str, Any]:
        """List the plans, oldest first."""
        return {'plans': [plan.document() for plan in self.tools.plans.list()]}

    @operation('POST', policy=None, body=FACTS, response=PLAN, status=201)
    def add_plan(self, req: Request, body: Any) -> dict[str, Any]:
        """Add a plan: how long a state or hypervisor operation lasts, in seconds, in reads, or until released."""
        return self.tools.plans.add(**body).document()

    @operation('DELETE', policy=None, status=204)
    def clear_plans(self, req: Request) -> None:
        """Remove all plans."""
        self.tools.plans.clear()

    @operation('POST', '/release', policy=None, body=closed({'server': SERVER}), status=204, errors=(404,))
    def release_server(self, req: Request, body: Any) -> None:
        """Release a server from a state that lasts until it is released."""
        self.tools.plans.release(body.get('server'))

    @operation('DELETE', '/{plan_id}', policy=None, status=204)
    def remove_plan(self, req: Request, plan_id: str) -> None:
        """Remove a plan; servers that wait because of it continue."""
        self.tools.plans.get(number(plan_id)).remove()
