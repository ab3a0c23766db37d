"""What is in a cell that is down, from 2.69 on: shown as far as it is known elsewhere, among what all is known of."""

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
    """The schema of the one or, from 2.69 on, of the other."""
    return changed({'2.1': view, SHOWN: {'anyOf': [view, unreachable]}})


def render_all(req: Request, view: View, unreachable: View, things: Sequence[Any]) -> list[dict[str, Any]]:
    """Each as the view shows it that fits."""
    if not any(thing.unreachable for thing in things):
        return view.render_all(req, things)
    whole, partly = view.renderer(req), unreachable.renderer(req)
    return [partly(thing) if thing.unreachable else whole(thing) for thing in things]
