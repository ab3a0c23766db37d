"""The base class of the resources of the compute API."""

from computeapi.api.cloud import CloudManagers
from computeapi.web.controller import Controller


class ComputeController(Controller):
    """A resource of the compute API."""

    def __init__(self, cloud: CloudManagers):
        self.cloud = cloud
