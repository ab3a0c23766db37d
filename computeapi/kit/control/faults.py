"""/faults: fault rules."""

from typing import Any

from computeapi.kit.control.service import NUMBER, ControlController, number
from computeapi.kit.faults.rules import FACTS
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone

RULE = closed({'id': NUMBER, 'hits': {'type': 'integer', 'minimum': 0}, **FACTS['properties']}, ['id', 'hits'])


class FaultRules(ControlController):
    """Rules that make requests, or operations of the hypervisor, fail, hang or slow down."""

    path = '/faults'

    @operation('GET', policy=None, response=lone('faults', array(RULE)))
    def list_faults(self, req: Request) -> dict[str, Any]:
        """List the rules with their hits, oldest first."""
        return {'faults': [rule.document() for rule in self.tools.faults.list()]}

    @operation('POST', policy=None, body=FACTS, response=RULE, status=201)
    def add_fault(self, req: Request, body: Any) -> dict[str, Any]:
        """Add a rule: which requests or hypervisor operations it affects, when, and how."""
        return self.tools.faults.add(**body).document()

    @operation('DELETE', policy=None, status=204)
    def clear_faults(self, req: Request) -> None:
        """Remove all rules."""
        self.tools.faults.clear()

    @operation('GET', '/{fault_id}', policy=None, response=RULE)
    def show_fault(self, req: Request, fault_id: str) -> dict[str, Any]:
        """Show a rule with its hits."""
        return self.tools.faults.get(number(fault_id)).document()

    @operation('DELETE', '/{fault_id}', policy=None, status=204)
    def remove_fault(self, req: Request, fault_id: str) -> None:
        """Remove a rule; operations that hang because of it continue."""
        self.tools.faults.get(number(fault_id)).remove()
