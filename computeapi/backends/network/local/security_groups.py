"""Rules for security groups and their rules."""

from collections.abc import Iterable, Sequence
from typing import Any

from computeapi import errors, randomness
from computeapi.backends.network import protocols
from computeapi.backends.network.local import addresses
from computeapi.db import network_projects, security_groups
from computeapi.db.network_collection import Document, Work
from computeapi.db.security_groups import DEFAULT, GROUPS, RULES

ETHERTYPES = {'ipv4': 'IPv4', 'ipv6': 'IPv6'}
VERSIONS = {4: 'IPv4', 6: 'IPv6'}
MAX_PORT = 65535
MAX_ICMP = 255
BOTH_ICMP = {protocols.ICMP, protocols.ICMPV6}


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    default_group(work, project_id)
    if facts.get('name') == DEFAULT:
        raise errors.Conflict('Default security group already exists.')
    network_projects.reserve(work, project_id, 'security_group')
    network_projects.reserve(work, project_id, 'security_group_rule', len(VERSIONS))
    return _add_group(work, {**facts, 'project_id': project_id})


def update(work: Work, group_id: str, facts: Document) -> None:
    group = GROUPS.owned(work, group_id)
    if facts.get('name', group['name']) != group['name'] and DEFAULT in (facts['name'], group['name']):
        raise errors.Conflict('Updating default security group not allowed.')
    if facts.get('stateful', group['stateful']) != group['stateful'] and security_groups.is_used(work, group_id):
        raise errors.SecurityGroupInUse(id=group_id)
    GROUPS.update(work, group_id, facts)


def delete(work: Work, group_id: str) -> None:
    group = GROUPS.owned(work, group_id)
    if group['name'] == DEFAULT and not work.context.is_admin:
        raise errors.Conflict('Insufficient rights for removing default security group.')
    if security_groups.is_used(work, group_id):
        raise errors.SecurityGroupInUse(id=group_id)
    security_groups.delete_group(work, group_id)


def has_default_group(work: Work, project_id: str) -> bool:
    return security_groups.default_group(work, project_id) is not None


def default_group(work: Work, project_id: str) -> str:
    """The ID of the project's default group, created on first use."""
    group_id = security_groups.default_group(work, project_id)
    if group_id is None:
        network_projects.lock_project(work, project_id)
        # The random values must not depend on which request needs the group first.
        with randomness.apart('default security group', project_id):
            group_id = security_groups.default_group(work, project_id) or _add_default_group(work, project_id)
    return group_id


def check_groups(work: Work, project_id: str, ids: Iterable[str]) -> Sequence[str]:
    """The IDs, without duplicates; raises SecurityGroupNotFound for the first that is not a group of the project, and
    Conflict if only some of the groups are stateful."""
    wanted = list(dict.fromkeys(ids))
    stateful = security_groups.stateful_groups(work, project_id, wanted)
    for group_id in wanted:
        if group_id not in stateful:
            raise errors.SecurityGroupNotFound(id=group_id)
    if len(set(stateful.values())) > 1:
        raise errors.Conflict(
            'Cannot apply both stateful and stateless security groups on the same port at the same time.'
        )
    return wanted


def _add_default_group(work: Work, project_id: str) -> str:
    group_id = _add_group(work, {'name': DEFAULT, 'description': 'Default security group', 'project_id': project_id})
    for ethertype in VERSIONS.values():
        _add_rule(work, group_id, project_id, direction='ingress', ethertype=ethertype, remote_group_id=group_id)
    return group_id


def _add_group(work: Work, facts: Document) -> str:
    """Creates a group that allows all egress traffic."""
    group_id = GROUPS.insert(work, facts)
    for ethertype in VERSIONS.values():
        _add_rule(work, group_id, facts['project_id'], direction='egress', ethertype=ethertype)
    return group_id


def _add_rule(work: Work, group_id: str, project_id: str, **kwargs: Any) -> str:
    return RULES.insert(work, {**kwargs, 'security_group_id': group_id, 'project_id': project_id})


def create_rule(work: Work, facts: Document) -> str:
    """A rule of an administrator need not belong to the project of its group."""
    group_id, project_id = facts['security_group_id'], network_projects.owner(work, facts)
    GROUPS.get(work, group_id)
    rule = {**facts, **_checked_rule(facts), 'project_id': project_id}
    if rule.get('remote_group_id') is not None:
        GROUPS.get(work, rule['remote_group_id'])
    network_projects.reserve(work, project_id, 'security_group_rule')
    same = security_groups.same_rule(work, rule, protocols.spellings(rule['protocol']))
    if same:
        raise errors.SecurityGroupRuleExists(id=same)
    # Before the rule, whose insertion locks the group for others that read it.
    GROUPS.update(work, group_id, {})
    return RULES.insert(work, rule)


def update_rule(work: Work, rule_id: str, facts: Document) -> None:
    _hold(work, rule_id)
    RULES.update(work, rule_id, facts)


def delete_rule(work: Work, rule_id: str) -> None:
    _hold(work, rule_id)
    RULES.delete(work, id=rule_id)


def _hold(work: Work, rule_id: str) -> None:
    """Lock the group, whose revision this is, and then the rule."""
    GROUPS.update(work, RULES.get(work, rule_id)['security_group_id'], {})
    RULES.lock(work, rule_id)


def _checked_rule(facts: Document) -> Document:
    """The normalized form of the attributes that can be written in several ways."""
    ethertype = ETHERTYPES.get((facts.get('ethertype') or 'IPv4').lower())
    if ethertype is None:
        raise addresses.invalid('ethertype', facts['ethertype'], 'is neither IPv4 nor IPv6')
    protocol, number = _protocol(facts.get('protocol'))
    if number in BOTH_ICMP and ethertype == VERSIONS[6]:
        protocol, number = protocols.IPV6_ICMP, protocols.ICMPV6
    if number in protocols.OF_IPV6 and ethertype == VERSIONS[4]:
        raise errors.Invalid(f'Invalid ethertype {ethertype} for protocol {protocol}.')
    _check_ports(number, facts.get('port_range_min'), facts.get('port_range_max'))
    prefix, network = _remote_prefix(facts.get('remote_ip_prefix'), ethertype)
    if prefix and facts.get('remote_group_id'):
        raise errors.Invalid('Only remote_ip_prefix or remote_group_id may be provided.')
    return {'ethertype': ethertype, 'protocol': protocol, 'remote_ip_prefix': prefix, 'normalized_cidr': network}


def _protocol(value: str | int | None) -> tuple[str | None, int | None]:
    """The stored form of the protocol (a name in lower case, or its number as text), and its number."""
    text = str(value).lower() if value is not None else 'any'
    if text == 'any':
        return None, None
    if text in protocols.NUMBERS:
        return text, protocols.NUMBERS[text]
    if text.isdecimal() and len(text) <= 3 and int(text) <= 255:
        return str(int(text)), int(text)
    raise addresses.invalid('protocol', value, 'is neither the name of a protocol nor a number from 0 to 255')


def _check_ports(protocol: int | None, low: int | None, high: int | None) -> None:
    for value in (low, high):
        if value is not None and not 0 <= value <= MAX_PORT:
            raise errors.Invalid(f'Invalid value for port {value}')
    if low is None and high is None:
        return
    if protocol is None:
        raise errors.Invalid('Must also specify protocol if port range is given.')
    if protocol in BOTH_ICMP:
        _check_icmp(low, high)
    elif protocol not in protocols.WITH_PORTS:
        raise addresses.invalid('port_range_min', low, f'is not valid for protocol {protocol}')
    elif 0 in (low, high):
        raise errors.Invalid('Invalid value for port 0')
    elif low is None or high is None or low > high:
        raise errors.Invalid('For TCP/UDP protocols, port_range_min must be <= port_range_max')


def _check_icmp(kind: int | None, code: int | None) -> None:
    for name, field, value in (('type', 'port_range_min', kind), ('code', 'port_range_max', code)):
        if value is not None and value > MAX_ICMP:
            raise errors.Invalid(f'Invalid value for ICMP {name} ({field}) {value}. It must be 0 to {MAX_ICMP}.')
    if kind is None:
        raise errors.Invalid(
            f'ICMP code (port-range-max) {code} is provided but ICMP type (port-range-min) is missing.'
        )


def _remote_prefix(text: str | None, ethertype: str) -> tuple[str | None, str | None]:
    """The prefix with its length, and the network that it denotes; the prefix keeps its host bits."""
    if not text:
        return None, None
    address = addresses.parse_prefix(text, 'remote_ip_prefix')
    if VERSIONS[address.version] != ethertype:
        raise errors.Invalid(f'Conflicting value ethertype {ethertype} for CIDR {text}')
    return str(address), str(address.network)
