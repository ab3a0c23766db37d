"""QoS policies and their rules, with one path for each type of rule."""

from typing import Any

from computeapi import errors
from computeapi.db.qos import FACTS, MINIMUM_BANDWIDTH, MINIMUM_PACKET_RATE
from computeapi.standalone.access import ADMIN, CALLER, WRITER
from computeapi.standalone.network import query
from computeapi.standalone.network.attributes import BOOLEAN, NAME, NeutronResource, number
from computeapi.standalone.network.resources import OBJECT, NeutronCollection, NeutronTags
from computeapi.standalone.network.service import NeutronController
from computeapi.standalone.schema import Schema, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

POLICY = NeutronResource(
    'policy',
    'name',
    both={'name': NAME, 'shared': BOOLEAN, 'is_default': BOOLEAN},
    key='policies',
    kind='qos/policies',
)
RULES = 'qos/rules'

AMOUNT = number(0, 2**31 - 1)
DIRECTION = {'enum': ['egress', 'ingress']}
# The code points that have names.
DSCP_MARK = {'enum': [0, *range(8, 41, 2), 46, 48, 56]}
ATTRIBUTES = {
    'direction': DIRECTION,
    'min_kbps': AMOUNT,
    'min_kpps': AMOUNT,
    'max_kbps': AMOUNT,
    'max_burst_kbps': AMOUNT,
    'dscp_mark': DSCP_MARK,
}


class QosPolicies(NeutronTags, NeutronCollection):
    """QoS policies, which administrators create for themselves and for others."""

    path = f'/{POLICY.kind}'
    kind = POLICY.kind
    resource = POLICY


class QosPolicyTags(NeutronTags):
    """Tags of policies, at the path that clients use."""

    path = '/policies'
    kind = POLICY.kind


class QosRules(NeutronController):
    """The rules of one type in a policy.

    needed: the required attribute.  usual: the defaults of attributes that the client leaves out. attributes: the
    schemas of attributes.
    """

    type: str
    needed: str
    usual: dict[str, Any] = {}
    attributes: dict[str, Any] = ATTRIBUTES

    @property
    def name(self) -> str:
        return f'{self.type}_rule'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, policy_id: str) -> dict[str, Any]:
        self.networks.get(req.context, POLICY.kind, policy_id)
        wanted = query.filters(req) | {'qos_policy_id': [policy_id], 'type': [self.type]}
        found = self.networks.find(req.context, RULES, wanted, query.page(req))
        return {f'{self.name}s': [self.view(req, rule) for rule in found]}

    @operation('GET', '/{rule_id}', policy=CALLER)
    def show(self, req: Request, policy_id: str, rule_id: str) -> dict[str, Any]:
        return {self.name: self.view(req, self.rule(req, policy_id, rule_id))}

    @operation('POST', policy=WRITER, body=OBJECT, status=201)
    def create(self, req: Request, policy_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = self.usual | self.facts(body, self.needed)
        made = self.networks.create(req.context, RULES, {**facts, 'type': self.type, 'qos_policy_id': policy_id})
        return {self.name: self.view(req, made)}

    @operation('PUT', '/{rule_id}', policy=WRITER, body=OBJECT)
    def update(self, req: Request, policy_id: str, rule_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.rule(req, policy_id, rule_id)
        return {self.name: self.view(req, self.networks.update(req.context, RULES, rule_id, self.facts(body)))}

    @operation('DELETE', '/{rule_id}', policy=WRITER, status=204)
    def delete(self, req: Request, policy_id: str, rule_id: str) -> None:
        self.rule(req, policy_id, rule_id)
        self.networks.delete(req.context, RULES, rule_id)

    def rule(self, req: Request, policy_id: str, rule_id: str) -> dict[str, Any]:
        """The rule; raises QosRuleNotFound unless it is of this type and in this policy."""
        rule = self.networks.get(req.context, RULES, rule_id)
        if (rule['qos_policy_id'], rule['type']) != (policy_id, self.type):
            raise errors.QosRuleNotFound(id=rule_id)
        return rule

    def facts(self, body: dict[str, Any], *required: str) -> dict[str, Any]:
        Schema(wrapped(self.name, {name: self.attributes[name] for name in FACTS[self.type]}, *required)).check(body)
        facts: dict[str, Any] = body[self.name]
        return facts

    def view(self, req: Request, rule: dict[str, Any]) -> dict[str, Any]:
        fields = query.fields(req)
        return {name: rule[name] for name in ('id', *FACTS[self.type]) if not fields or name in fields}


class MinimumBandwidthRules(QosRules):
    """The bandwidth that a port is guaranteed, by direction."""

    path = '/qos/policies/{policy_id}/minimum_bandwidth_rules'
    type, needed, usual = MINIMUM_BANDWIDTH, 'min_kbps', {'direction': 'egress'}


class MinimumPacketRateRules(QosRules):
    """The packet rate that a port is guaranteed, by direction."""

    path = '/qos/policies/{policy_id}/minimum_packet_rate_rules'
    type, needed, usual = MINIMUM_PACKET_RATE, 'min_kpps', {'direction': 'egress'}
    attributes = ATTRIBUTES | {'direction': {'enum': ['egress', 'ingress', 'any']}}


class BandwidthLimitRules(QosRules):
    """The bandwidth that a port may use at most, by direction."""

    path = '/qos/policies/{policy_id}/bandwidth_limit_rules'
    type, needed, usual = 'bandwidth_limit', 'max_kbps', {'direction': 'egress', 'max_burst_kbps': 0}


class DscpMarkingRules(QosRules):
    """The DSCP mark of the packets of a port."""

    path = '/qos/policies/{policy_id}/dscp_marking_rules'
    type, needed = 'dscp_marking', 'dscp_mark'


class QosRuleTypes(NeutronController):
    """The types of rules."""

    path = '/qos/rule-types'

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        return {'rule_types': [{'type': name} for name in FACTS]}

    @operation('GET', '/{name}', policy=ADMIN)
    def show(self, req: Request, name: str) -> dict[str, Any]:
        """Show a rule type. It has no drivers because no agent applies the rules."""
        if name not in FACTS:
            raise errors.NotFound(f'QoS rule type {name} could not be found.')
        return {'rule_type': {'type': name, 'drivers': []}}


QOS = (
    QosPolicies,
    QosPolicyTags,
    MinimumBandwidthRules,
    MinimumPacketRateRules,
    BandwidthLimitRules,
    DscpMarkingRules,
    QosRuleTypes,
)
