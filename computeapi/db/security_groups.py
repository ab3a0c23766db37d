"""Security groups and their rules."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.listing import Clause
from computeapi.db.network_collection import Collection, Document, Work, ids_of
from computeapi.db.ownership import CALLER, own_rows
from computeapi.db.records import Among, grouped
from computeapi.db.tables.network import port_security_groups, security_group_rules, security_groups

DEFAULT = 'default'

# Two rules of a group with the same values in these are duplicates.
MEANING = (
    'security_group_id',
    'direction',
    'ethertype',
    'port_range_min',
    'port_range_max',
    'normalized_cidr',
    'remote_group_id',
)


def _visible_rules(context: Context) -> Clause:
    """One's own, and those of one's own groups."""
    mine = sa.select(security_groups.c.id).where(own_rows(security_groups, context))
    return sa.or_(own_rows(security_group_rules, context), security_group_rules.c.security_group_id.in_(mine))


RULES = Collection(security_group_rules, errors.SecurityGroupRuleNotFound, visible=_visible_rules)


def _add_rules(work: Work, documents: list[Document]) -> None:
    rules = RULES.find(work, security_group_id=ids_of(documents))
    by_group = grouped((rule['security_group_id'], rule) for rule in rules)
    for document in documents:
        document['security_group_rules'] = by_group.get(document['id'], [])


GROUPS = Collection(security_groups, errors.SecurityGroupNotFound, complete=_add_rules)


DEFAULT_GROUP = sa.select(security_groups.c.id).where(
    security_groups.c.project_id == sa.bindparam('project'), security_groups.c.name == DEFAULT
)
VISIBLE_NAMES = {
    is_admin: Among(
        sa.select(security_groups.c.id, security_groups.c.name).where(
            own_rows(security_groups, Context(is_admin=is_admin))
        ),
        security_groups.c.id,
    )
    for is_admin in (False, True)
}


def groups_called(work: Work, project_id: str, names_or_ids: Iterable[str]) -> list[Document]:
    wanted = list(names_or_ids)
    called = sa.or_(security_groups.c.id.in_(wanted), security_groups.c.name.in_(wanted))
    return GROUPS.find(work, called, project_id=project_id)


def default_group(work: Work, project_id: str) -> str | None:
    """The ID of the project's default group, if it exists."""
    return work.connection.scalar(DEFAULT_GROUP, {'project': project_id})


def names(work: Work, ids: Iterable[str]) -> dict[str, str]:
    """The names of those of the groups that the caller may see, by ID."""
    caller = {CALLER: work.context.project_id}
    rows = VISIBLE_NAMES[work.context.is_admin].rows(work.connection, set(ids), caller)
    return {row[0]: row[1] for row in rows}


def stateful_groups(work: Work, project_id: str, ids: Iterable[str]) -> dict[str, bool]:
    """Which of the groups of the project among these are stateful."""
    mine = (security_groups.c.project_id == project_id, security_groups.c.id.in_(set(ids)))
    rows = work.connection.execute(sa.select(security_groups.c.id, security_groups.c.stateful).where(*mine))
    return {row.id: row.stateful for row in rows}


def is_used(work: Work, group_id: str) -> bool:
    used = sa.exists().where(port_security_groups.c.security_group_id == group_id)
    return bool(work.connection.scalar(sa.select(used)))


def same_rule(work: Work, facts: Mapping[str, Any], protocols: Sequence[str]) -> str | None:
    """The ID of an equivalent rule, if there is one. protocols: how the protocol can be written; none: any protocol."""
    rules = security_group_rules.c
    same = [rules[name].is_not_distinct_from(facts.get(name)) for name in MEANING]
    same.append(rules.protocol.in_(protocols) if protocols else rules.protocol.is_(None))
    return work.connection.scalar(sa.select(rules.id).where(*same).limit(1))


def delete_group(work: Work, group_id: str) -> None:
    """Delete the group with its rules, and the rules of other groups that refer to it."""
    RULES.delete(work, security_group_id=group_id)
    RULES.delete(work, remote_group_id=group_id)
    GROUPS.delete(work, id=group_id)
