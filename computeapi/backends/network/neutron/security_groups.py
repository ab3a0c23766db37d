"""The security groups of a Neutron."""

from collections.abc import Iterable, Mapping
from typing import Any

from computeapi import errors
from computeapi.backends.network import SecurityGroup
from computeapi.backends.network.neutron.client import Document, NeutronClient, is_id
from computeapi.context import Context

GROUP = 'security_group'


class NeutronSecurityGroups(NeutronClient):
    def security_groups(
        self,
        context: Context,
        *,
        ids: Iterable[str] | None = None,
        names_or_ids: Iterable[str] | None = None,
        all_projects: bool = False,
    ) -> list[SecurityGroup]:
        if ids is not None:
            found: Iterable[Document] = self.by_id(context, 'security_groups', ids).values()
        elif names_or_ids is not None:
            found = self._called(context, list(dict.fromkeys(names_or_ids)))
        else:
            whose = {} if all_projects else {'project_id': context.project_id}
            found = self.found(context, 'security_groups', **whose)
        return [group_of(group) for group in found]

    def security_group_names(self, context: Context, ids: Iterable[str]) -> dict[str, str]:
        return {group.id: group.name for group in self.security_groups(context, ids=ids)}

    def security_group(self, context: Context, group_id: str) -> SecurityGroup:
        if not is_id(group_id):
            raise errors.SecurityGroupNotFound(id=group_id)
        return group_of(self.one(context, GROUP, 'GET', f'/security-groups/{group_id}'))

    def create_security_group(self, context: Context, name: str, description: str) -> SecurityGroup:
        return group_of(self.one(context, GROUP, 'POST', '/security-groups', name=name, description=description))

    def update_security_group(self, context: Context, group_id: str, **kwargs: Any) -> SecurityGroup:
        if not is_id(group_id):
            raise errors.SecurityGroupNotFound(id=group_id)
        return group_of(self.one(context, GROUP, 'PUT', f'/security-groups/{group_id}', **kwargs))

    def delete_security_group(self, context: Context, group_id: str) -> None:
        if not is_id(group_id):
            raise errors.SecurityGroupNotFound(id=group_id)
        self.request(context, 'DELETE', f'/security-groups/{group_id}')

    def create_security_group_rule(self, context: Context, group_id: str, **kwargs: Any) -> Mapping[str, Any]:
        wanted = {name: value for name, value in kwargs.items() if value is not None}
        rule = {'direction': 'ingress', **wanted, 'security_group_id': group_id}
        made: Document = self.request(context, 'POST', '/security-group-rules', {'security_group_rule': rule})
        return dict(made['security_group_rule'])

    def delete_security_group_rule(self, context: Context, rule_id: str) -> None:
        if not is_id(rule_id):
            raise errors.SecurityGroupRuleNotFound(id=rule_id)
        self.request(context, 'DELETE', f'/security-group-rules/{rule_id}')

    def _called(self, context: Context, wanted: list[str]) -> list[Document]:
        """One group for each; IDs take precedence over names."""
        named = self.found_by(context, 'security_groups', 'name', wanted, project_id=context.project_id)
        by_id = self.by_id(context, 'security_groups', wanted)
        return [by_id.get(each) or only(each, [group for group in named if group['name'] == each]) for each in wanted]


def group_of(group: Document) -> SecurityGroup:
    """The group with its rules in the order of creation."""
    rules = sorted(group['security_group_rules'], key=lambda rule: (rule.get('created_at') or '', rule['id']))
    return SecurityGroup.of(group | {'security_group_rules': rules})


def only(name: str, groups: list[Document]) -> Document:
    if not groups:
        raise errors.SecurityGroupNotFound(f"Unable to find security_group with name or id '{name}'")
    if len(groups) > 1:
        raise errors.Conflict(
            f"Multiple security_group matches found for name '{name}', use an ID to be more specific."
        )
    return groups[0]
