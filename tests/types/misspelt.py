"""Mypy detects misspellings in controllers: it reports any `ignore` here that suppresses nothing."""

from computeapi.api.servers.controller import ServerController
from computeapi.compute.servers import power
from computeapi.compute.tasks.job import Job
from computeapi.db.servers import Server
from computeapi.web.request import Request


class Misspelt(ServerController):
    """Each line would be correct except for one letter or argument."""

    def confirm(self, req: Request, server: Server) -> None:
        self.cloud.resizes.confrim(req.context, server)  # type: ignore[attr-defined]
        self.cloud.resize.confirm(req.context, server)  # type: ignore[attr-defined]
        self.cloud.resizes.confirm(server, req.context)  # type: ignore[arg-type]

    def pause(self, req: Request, server: Server) -> None:
        self.begin(req, server, power.PUASE)  # type: ignore[attr-defined]
        self.begin(req, server.id, power.PAUSE)  # type: ignore[arg-type]


@power.PAUSE.work
def pause(job: Job) -> None:
    job.driver.puase(job.server)  # type: ignore[attr-defined]
    job.finish(vm_state=job.server.vm_sate)  # type: ignore[attr-defined]
