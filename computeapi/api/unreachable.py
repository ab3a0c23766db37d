"""Resources in cells that are down, which lists include from 2.69 on, with whatever is known about them elsewhere."""

from collections.abc import Sequence
from typing import Any

from computeapi.versions import added, changed
from computeapi.web.contract import Field, View
from computeapi.web.request import Request

SHOWN = '2.69'
BEHAVIOUR = {'unreachable': added(SHOWN, True)}
UNKNOWN = 'UNKNOWN'
STATUS = Field({'const': UNKNOWN}, lambda thing: UNKNOWN)


def either(view: View, unreachable: View) -> Any:
    """The schema of the first view, or, from 2.69 on, of either."""
    return changed({'2.1': view, SHOWN: {'anyOf': [view, unreachable]}})


def render_all(req: Request, view: View, unreachable: View, things: Sequence[Any]) -> list[dict[str, Any]]:
    """Renders each thing with the view that applies to it."""
    if not any(thing.unreachable for thing in things):
        return view.render_all(req, things)
    whole, partly = view.renderer(req), unreachable.renderer(req)
    return [partly(thing) if thing.unreachable else whole(thing) for thing in things]
