"""A dry run of POST /servers: the response, and the host of each server. Nothing is created."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from computeapi.api.servers.create import ServerCreation, rights_of
from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.registry import built_in
from computeapi.compute.scheduler.filters import ALWAYS, FILTERS
from computeapi.compute.scheduler.hosts import HostState
from computeapi.compute.servers.creation.dry_run import DryRunServer, dry_run
from computeapi.context import Context
from computeapi.main import Service
from computeapi.versions import COMPUTE, APIVersionRequest
from computeapi.web import faults
from computeapi.web.contract import JSON, summary_of
from computeapi.web.request import CONTEXT, VERSION, Request

Document = dict[str, Any]


class DryRun:
    """Runs requests for servers through everything that precedes the first write."""

    def __init__(self, service: Service):
        self.service = service

    def create_server(
        self, body: Mapping[str, Any], *, microversion: str = 'latest', user: str = 'admin', project: str | None = None
    ) -> Document:
        """What POST /servers would answer to this body, and what would happen to the servers.

        user, project: names in the default domain; the default project is that of the user.
        `status` and `message` are those of the response; `possible` says whether a host was found for each server;
        `servers` contains the filters, with the hosts that passed and were refused, and the free resources of the
        remaining hosts (memory in MiB, disk in GiB). Raises ValueError for an unknown version; NotFound,
        NotAuthenticated for a user.
        """
        version = COMPUTE.max if microversion == 'latest' else COMPUTE.version(microversion)
        identity = built_in('identity', LocalIdentity, self.service.identity)
        context = identity.acting_as(user, project)
        try:
            servers = self._dry_run(body, version, context)
        except Exception as error:
            if not faults.is_expected(error):
                raise
            return {'possible': False, 'status': faults.status_of(error), 'message': str(error), 'servers': []}
        results = [_server_result(each) for each in servers]
        return {'possible': all(each['host'] for each in results), 'status': 202, 'message': None, 'servers': results}

    def _dry_run(self, body: Mapping[str, Any], version: APIVersionRequest, context: Context) -> list[DryRunServer]:
        """Do what App.__call__ does, up to the point where the handler would write."""
        req = Request.blank('/servers', method='POST', content_type=JSON, body=orjson.dumps(body))
        req.environ.update({CONTEXT: context, VERSION: version})
        app = self.service.compute_app
        match = app.routes.find(req.environ)
        assert match is not None
        req.policies, req.version = app.policies, version
        document = req.document()
        bound = app.choose(req, match.endpoint, document)
        controller = app.controllers[bound.kind]
        assert isinstance(controller, ServerCreation)
        parameters: dict[str, Any] = {}
        app.accept(req, bound.operation, parameters, document)
        app.authorize(req, controller, parameters)
        wanted = controller.server_request(req, document)
        return dry_run(controller.cloud.builder, context, wanted, rights_of(req))


def _server_result(server: DryRunServer) -> Document:
    spec, host = server.spec, server.host
    return {
        'name': server.name,
        'host': host.name if host else None,
        'message': server.reason,
        'needs': {'vcpus': spec.vcpus, 'memory_mb': spec.memory_mb, 'disk_gb': spec.disk_gb},
        'filters': list(_steps(server)),
        'candidates': [_room(each) for each in server.survey.best],
        'full': [each.name for each in server.full],
    }


def _steps(server: DryRunServer) -> Iterator[Document]:
    """Each filter, with the hosts that it refused and the reason."""
    left = server.survey.known
    for name, passed in server.survey.steps:
        refused = sorted({host.name for host in left} - {host.name for host in passed})
        requested = 'The host is the requested one, if one is requested.'
        reason = summary_of((ALWAYS | FILTERS)[name]) if name else requested
        yield {
            'filter': name or None,
            'passed': [host.name for host in passed],
            'refused': refused,
            'reason': reason if refused else None,
        }
        left = passed


def _room(host: HostState) -> Document:
    return {
        'host': host.name,
        'free_vcpus': host.free_vcpus,
        'free_memory_mb': host.free_memory_mb,
        'free_disk_gb': host.free_disk_gb,
    }
