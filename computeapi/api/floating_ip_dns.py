"""/os-floating-ip-dns: DNS domains, and the names in them, until 2.35."""

import ipaddress
import re
import urllib.parse
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.servers.schemas import ADDRESS
from computeapi.api.types import NONEMPTY, NOTHING, NULLABLE_STRING, STRING
from computeapi.backends.network.nova_network import DNSDomain, DNSEntry
from computeapi.errors import DNSEntryNotFound, Invalid
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, one_of, whole

LIST = Policy('os_compute_api:os-floating-ip-dns', READER_OR_ADMIN, 'List DNS domains, and show the entries of one')
UPDATE_ENTRY = Policy('os_compute_api:os-floating-ip-dns:entry:update', MEMBER_OR_ADMIN, 'Create or update a DNS entry')
DELETE_ENTRY = Policy('os_compute_api:os-floating-ip-dns:entry:delete', MEMBER_OR_ADMIN, 'Delete a DNS entry')
UPDATE_DOMAIN = Policy('os_compute_api:os-floating-ip-dns:domain:update', ADMIN, 'Create or update a DNS domain')
DELETE_DOMAIN = Policy('os_compute_api:os-floating-ip-dns:domain:delete', ADMIN, 'Delete a DNS domain')

# ------------------------------------------------------------------ requests

DNS_NAME = re.compile(r'(?=.{1,255}\Z)[\w-]+(\.[\w-]+)*', re.ASCII)
PROJECT = NONEMPTY | {'pattern': '^[a-zA-Z0-9-]*$'}
DOMAIN_BODY = closed(
    {'scope': one_of('public', 'private'), 'project': PROJECT, 'availability_zone': NONEMPTY}, ['scope']
)
ENTRY_BODY = whole({'ip': ADDRESS, 'dns_type': one_of('A', 'AAAA')})


def dns_name(text: str) -> str:
    """The name in a path; clients quote it twice, because of its dots."""
    name = urllib.parse.unquote(text)
    if not DNS_NAME.fullmatch(name):
        raise Invalid(f'Invalid input received: {text[:255]} is not a name')
    return name


def is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


# ------------------------------------------------------------------ views

DOMAIN = View(
    {
        'domain': Field(STRING, attr('domain')),
        'scope': Field(STRING, attr('scope')),
        'project': Field(NULLABLE_STRING, attr('project_id')),
        'availability_zone': Field(NULLABLE_STRING, attr('availability_zone')),
    }
)
ENTRY = View(
    {
        'domain': Field(STRING, attr('domain')),
        'name': Field(STRING, attr('name')),
        'ip': Field(STRING, attr('ip_address')),
        'type': Field(NULLABLE_STRING, attr('kind')),
        'id': Field(NOTHING, lambda entry: None),
    }
)


class FloatingIPDNS(ComputeController):
    """DNS domains and entries for floating IPs."""

    path = '/os-floating-ip-dns'
    versions = PROXIES

    @operation('GET', policy=LIST, response={'domain_entries': array(DOMAIN)}, errors=(501,))
    def index(self, req: Request) -> dict[str, Any]:
        """List the DNS domains of the project, and those that every project can use."""
        return {'domain_entries': DOMAIN.render_all(req, self.cloud.networks.dns_domains(req.context))}

    @operation(
        'PUT',
        '/{id}',
        policy=UPDATE_DOMAIN,
        body=lone('domain_entry', DOMAIN_BODY),
        response={'domain_entry': DOMAIN},
        errors=(501,),
    )
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Create or update a DNS domain of a project or of an availability zone."""
        requested = body['domain_entry']
        unfit = 'project' if requested['scope'] == 'private' else 'availability_zone'
        if unfit in requested:
            raise Invalid(f'you can not pass {unfit} if the scope is {requested["scope"]}')
        domain = DNSDomain(
            dns_name(id), requested['scope'], requested.get('project'), requested.get('availability_zone')
        )
        self.cloud.networks.set_dns_domain(req.context, domain)
        return {'domain_entry': DOMAIN.render(req, domain)}

    @operation('DELETE', '/{id}', policy=DELETE_DOMAIN, status=202, errors=(501,))
    def delete(self, req: Request, id: str) -> None:
        """Delete a DNS domain with all its entries."""
        self.cloud.networks.delete_dns_domain(req.context, dns_name(id))

    @operation(
        'GET',
        '/{domain_id}/entries/{id}',
        policy=LIST,
        response=closed({'dns_entry': ENTRY, 'dns_entries': array(ENTRY)}),
        errors=(501,),
    )
    def show_entry(self, req: Request, domain_id: str, id: str) -> dict[str, Any]:
        """Show the DNS entry of a name, or list those of an address."""
        domain, by_address = dns_name(domain_id), is_address(id)
        wanted = {'address': id} if by_address else {'name': dns_name(id)}
        found = ENTRY.render_all(req, self.cloud.networks.dns_entries(req.context, domain, **wanted))
        if not found:
            raise DNSEntryNotFound()
        return {'dns_entries': found} if by_address else {'dns_entry': found[0]}

    @operation(
        'PUT',
        '/{domain_id}/entries/{id}',
        policy=UPDATE_ENTRY,
        body=lone('dns_entry', ENTRY_BODY),
        response={'dns_entry': ENTRY},
        errors=(409, 501),
    )
    def update_entry(self, req: Request, domain_id: str, id: str, body: Any) -> dict[str, Any]:
        """Create or update a DNS entry."""
        requested = body['dns_entry']
        entry = DNSEntry(dns_name(domain_id), dns_name(id), requested['ip'], requested['dns_type'])
        self.cloud.networks.set_dns_entry(req.context, entry)
        return {'dns_entry': ENTRY.render(req, entry)}

    @operation('DELETE', '/{domain_id}/entries/{id}', policy=DELETE_ENTRY, status=202, errors=(501,))
    def delete_entry(self, req: Request, domain_id: str, id: str) -> None:
        """Delete a DNS entry."""
        self.cloud.networks.delete_dns_entry(req.context, dns_name(domain_id), dns_name(id))
