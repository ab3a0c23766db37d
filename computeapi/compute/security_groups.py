"""Security groups as the compute API shows them: their ingress rules."""

import builtins
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from computeapi.backends.network import Networks, SecurityGroup
from computeapi.compute.security_group_rules import rule_of
from computeapi.context import Context
from computeapi.errors import Conflict, Forbidden, Invalid, SecurityGroupRuleExists

EVERYWHERE = {'IPv4': '0.0.0.0/0', 'IPv6': '::/0'}
ALL_PORTS = (1, 65535)
ANY_KIND = (-1, -1)


class Rule(NamedTuple):
    """An ingress rule: traffic from the addresses of `cidr`, or from the members of the group `source`."""

    id: str
    group_id: str
    protocol: str | None
    from_port: int | None
    to_port: int | None
    cidr: str | None
    source: SecurityGroup | None


class Group(NamedTuple):
    """A security group with the rules that the compute API shows."""

    group: SecurityGroup
    rules: list[Rule]


def in_full(networks: Networks, context: Context, groups: Iterable[SecurityGroup]) -> list[Group]:
    """The groups with their rules, by project and name; the groups that the rules refer to are loaded in one more
    query."""
    known = {group.id: group for group in groups}
    entrances = {group_id: [rule for rule in known[group_id].rules if is_entrance(rule)] for group_id in known}
    named = {rule['remote_group_id'] for rules in entrances.values() for rule in rules if rule['remote_group_id']}
    if missing := named - known.keys():
        sources = known | {group.id: group for group in networks.security_groups(context, ids=missing)}
    else:
        sources = known
    ordered = sorted(known.values(), key=lambda group: (group.project_id, group.name))
    return [Group(group, [described(rule, sources) for rule in entrances[group.id]]) for group in ordered]


def is_entrance(rule: Mapping[str, Any]) -> bool:
    return bool(rule['direction'] == 'ingress')


def described(rule: Mapping[str, Any], groups: Mapping[str, SecurityGroup]) -> Rule:
    from_port, to_port = ports_of(rule)
    source = groups.get(rule['remote_group_id'] or '')
    anywhere = None if rule['remote_group_id'] else EVERYWHERE[rule['ethertype']]
    return Rule(
        id=rule['id'],
        group_id=rule['security_group_id'],
        protocol=rule['protocol'],
        from_port=from_port,
        to_port=to_port,
        cidr=rule['remote_ip_prefix'] or anywhere,
        source=source,
    )


def ports_of(rule: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The ports, or the type and code, spelled out if the rule covers its whole protocol."""
    low, high = rule['port_range_min'], rule['port_range_max']
    if rule['protocol'] is None or low is not None or high is not None:
        return low, high
    return ALL_PORTS if rule['protocol'] in ('tcp', 'udp') else ANY_KIND


class SecurityGroupManager:
    """The groups of a project. Errors: SecurityGroupNotFound, SecurityGroupRuleNotFound, OverQuota, Invalid."""

    def __init__(self, networks: Networks):
        self.networks = networks

    def list(self, context: Context, limit: int, offset: int, *, all_projects: bool = False) -> builtins.list[Group]:
        """List groups. all_projects: include those of other projects, for administrators."""
        found = self.networks.security_groups(context, all_projects=all_projects)
        return in_full(self.networks, context, found[offset : offset + limit])

    def get(self, context: Context, group_id: str) -> Group:
        check_id(group_id)
        return in_full(self.networks, context, [self.networks.security_group(context, group_id)])[0]

    def create(self, context: Context, name: str, description: str) -> Group:
        """Create a group; Forbidden for a name that only one group can have."""
        try:
            made = self.networks.create_security_group(context, name, description)
        except Conflict as error:
            raise Forbidden(str(error)) from None
        return in_full(self.networks, context, [made])[0]

    def update(self, context: Context, group_id: str, name: str, description: str) -> Group:
        check_id(group_id)
        try:
            changed = self.networks.update_security_group(context, group_id, name=name, description=description)
        except Conflict as error:
            raise Invalid(str(error)) from None
        return in_full(self.networks, context, [changed])[0]

    def delete(self, context: Context, group_id: str) -> None:
        """Delete a group; Invalid if it is in use."""
        check_id(group_id)
        try:
            self.networks.delete_security_group(context, group_id)
        except Conflict as error:
            raise Invalid(str(error)) from None

    def add_rule(self, context: Context, wanted: Mapping[str, Any]) -> Rule:
        """Add a rule. wanted: in the format of the compute API, with parent_group_id."""
        parent_id, source_id = wanted['parent_group_id'], wanted.get('group_id')
        self.networks.security_group(context, parent_id)
        sources = {source_id: self.networks.security_group(context, source_id)} if source_id else {}
        try:
            made = self.networks.create_security_group_rule(context, parent_id, **rule_of(wanted))
        except SecurityGroupRuleExists:
            raise Invalid(f'This rule already exists in group {parent_id}') from None
        return described(made, sources)

    def delete_rule(self, context: Context, rule_id: str) -> None:
        check_id(rule_id)
        self.networks.delete_security_group_rule(context, rule_id)


def check_id(text: str) -> None:
    """Invalid for a malformed ID of a group or rule."""
    try:
        uuid.UUID(text)
    except ValueError:
        raise Invalid('Security group id should be uuid') from None
