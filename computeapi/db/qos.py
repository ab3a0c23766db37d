"""QoS policies and their rules, and the resources that they request from the hosts of ports."""

from collections.abc import Collection as Several
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.listing import Clause
from computeapi.db.network_collection import Collection, Document, Work, ids_of, own_or_shared, shared
from computeapi.db.records import Among, grouped
from computeapi.db.tables.network import networks, ports, qos_policies, qos_rules

MINIMUM_BANDWIDTH, MINIMUM_PACKET_RATE = 'minimum_bandwidth', 'minimum_packet_rate'
FACTS = {
    MINIMUM_BANDWIDTH: ('direction', 'min_kbps'),
    MINIMUM_PACKET_RATE: ('direction', 'min_kpps'),
    'bandwidth_limit': ('direction', 'max_kbps', 'max_burst_kbps'),
    'dscp_marking': ('dscp_mark',),
}
"""The attributes of rules, by type."""

RESOURCES = {
    (MINIMUM_BANDWIDTH, 'egress'): 'NET_BW_EGR_KILOBIT_PER_SEC',
    (MINIMUM_BANDWIDTH, 'ingress'): 'NET_BW_IGR_KILOBIT_PER_SEC',
    (MINIMUM_PACKET_RATE, 'egress'): 'NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC',
    (MINIMUM_PACKET_RATE, 'ingress'): 'NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC',
    (MINIMUM_PACKET_RATE, 'any'): 'NET_PACKET_RATE_KILOPACKET_PER_SEC',
}
"""The resource classes that rules of these types and directions request."""

LEAST = sa.func.coalesce(qos_rules.c.min_kbps, qos_rules.c.min_kpps, 0)
REQUESTED = Among(
    sa.select(*qos_rules.c['qos_policy_id', 'type', 'direction'], LEAST).where(LEAST > 0).order_by(qos_rules.c.id),
    qos_rules.c.qos_policy_id,
)


def _visible_policies(context: Context) -> Clause:
    return own_or_shared(qos_policies, context)


def _visible_rules(context: Context) -> Clause:
    return qos_rules.c.qos_policy_id.in_(sa.select(qos_policies.c.id).where(_visible_policies(context)))


def _add_rules(work: Work, documents: list[Document]) -> None:
    rules = POLICY_RULES.find(work, qos_policy_id=ids_of(documents))
    of = grouped((rule['qos_policy_id'], rule) for rule in rules)
    for document in documents:
        document['rules'] = [_shown(rule) for rule in of.get(document['id'], ())]


def _shown(rule: Document) -> Document:
    return {name: rule[name] for name in ('id', 'qos_policy_id', 'type', *FACTS[rule['type']])}


POLICY_RULES = Collection(qos_rules, errors.QosRuleNotFound, visible=_visible_rules)
POLICIES = Collection(
    qos_policies,
    errors.QosPolicyNotFound,
    attributes={'shared': shared(qos_policies)},
    visible=_visible_policies,
    complete=_add_rules,
)


def default_policy(work: Work, project_id: str, *, but: str = '') -> str | None:
    """The policy of the project's new networks, other than `but`."""
    mine = (qos_policies.c.project_id == project_id, qos_policies.c.is_default, qos_policies.c.id != but)
    return work.connection.scalar(sa.select(qos_policies.c.id).where(*mine))


def policy_is_used(work: Work, policy_id: str) -> bool:
    used = (sa.exists().where(table.c.qos_policy_id == policy_id) for table in (networks, ports))
    return bool(work.connection.scalar(sa.select(sa.or_(*used))))


def asked_resources(work: Work, policy_ids: Several[str | None]) -> dict[str | None, dict[str, int]]:
    """By policy, the minimum amounts of resources that its ports request; policies without such rules are omitted."""
    wanted = [policy_id for policy_id in policy_ids if policy_id is not None]
    if not wanted:
        return {}
    rows = REQUESTED.rows(work.connection, wanted)
    found = grouped((policy, (RESOURCES[kind, way], amount)) for policy, kind, way, amount in rows)
    return {policy_id: dict(resources) for policy_id, resources in found.items()}


def resource_request(resources: dict[str, int], vnic_type: str = 'normal') -> dict[str, Any]:
    """The resource request of a port of this VNIC type, in Placement's terms."""
    return {'resources': resources, 'required': [f'CUSTOM_VNIC_TYPE_{vnic_type.upper().replace("-", "_")}']}
