"""A dry run of the scheduler: the hosts that new servers would get, without creating any."""

from dataclasses import dataclass

import sqlalchemy as sa

from computeapi.compute.scheduler import HostState, Spec, Survey
from computeapi.compute.scheduler.hosts import claim
from computeapi.compute.servers.creation.build import spec_of
from computeapi.compute.servers.creation.builder import Builder
from computeapi.compute.servers.creation.request import Rights, ServerRequest
from computeapi.compute.servers.creation.rows import Plan
from computeapi.context import Context
from computeapi.db import block_devices
from computeapi.db import servers as stored
from computeapi.db.servers import Server, is_volume_backed


@dataclass(frozen=True)
class DryRunServer:
    """A server that was not created.

    survey: the results of the filters.  full: the hosts that were tried but had no room.  host: where it would be.
    reason: why it would be on no host.
    """

    name: str
    spec: Spec
    survey: Survey
    full: list[HostState]
    host: HostState | None
    reason: str | None


def dry_run(builder: Builder, context: Context, request: ServerRequest, rights: Rights) -> list[DryRunServer]:
    """The results for a request, in which each server uses the resources of the hosts before the next. Errors: those of
    Builder.create.

    Resources and traits that only Placement knows are not considered.
    """

    def place(connection: sa.Connection, plan: Plan, servers: list[Server]) -> list[DryRunServer]:
        return [_placed(builder, connection, plan, server) for server in servers]

    return builder.dry_run(context, request, rights, place)


def _placed(builder: Builder, connection: sa.Connection, plan: Plan, server: Server) -> DryRunServer:
    scheduler = builder.platform.scheduler
    on_volume = is_volume_backed(server, block_devices.of_servers(connection, [server.uuid]))
    spec = spec_of(server, plan.arguments, on_volume=on_volume)
    if spec.groups:
        spec = scheduler.narrowed(connection, spec)
    survey = scheduler.survey(connection, spec)
    full: list[HostState] = []
    for host in survey.best:
        if claim(connection, spec, host, scheduler.ratios):
            stored.update(connection, server.uuid, {'host': host.name, 'node': host.node})
            return DryRunServer(server.name, spec, survey, full, host, None)
        full.append(host)
    return DryRunServer(server.name, spec, survey, full, None, str(scheduler.refusal(spec, survey)))
