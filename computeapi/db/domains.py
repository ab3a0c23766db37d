"""The virtual machines of the simulated hypervisor: one for a server on a host."""

from computeapi.db.records import Rows
from computeapi.db.tables.servers import VirtualMachine, domains

__all__ = ['VirtualMachine']

DOMAINS = Rows(VirtualMachine, domains)
