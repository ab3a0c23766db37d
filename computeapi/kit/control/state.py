"""/ and /snapshots: the state of the cloud."""

from typing import Any

from computeapi.kit.control.service import ControlController
from computeapi.kit.snapshots import MAX_NAME_LENGTH
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, lone, whole

NAME = {'type': 'string', 'minLength': 1, 'maxLength': MAX_NAME_LENGTH}
SNAPSHOT = whole({'name': NAME})


class CloudState(ControlController):
    """The cloud as a whole."""

    @operation('POST', '/reset', policy=None, status=204)
    def reset(self, req: Request) -> None:
        """Reset the cloud to its initial state."""
        self.tools.reset()


class NamedSnapshots(ControlController):
    """Saved states of the cloud, which can be restored."""

    path = '/snapshots'

    @operation('GET', policy=None, response=lone('snapshots', array(SNAPSHOT)))
    def list_snapshots(self, req: Request) -> dict[str, Any]:
        """List the snapshots, oldest first."""
        return {'snapshots': [{'name': name} for name in self.tools.snapshots.list()]}

    @operation('POST', policy=None, body=SNAPSHOT, response=SNAPSHOT, status=201, errors=(400, 409))
    def take_snapshot(self, req: Request, body: Any) -> dict[str, Any]:
        """Save the current state of the cloud under a name."""
        self.tools.snapshot(body['name'])
        return {'name': body['name']}

    @operation('POST', '/{name}/restore', policy=None, status=204)
    def restore_snapshot(self, req: Request, name: str) -> None:
        """Restore the cloud to a snapshot."""
        self.tools.restore(name)

    @operation('DELETE', '/{name}', policy=None, status=204, errors=(409,))
    def delete_snapshot(self, req: Request, name: str) -> None:
        """Delete a snapshot."""
        self.tools.forget(name)
