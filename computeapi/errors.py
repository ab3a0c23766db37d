"""The errors of the service, in domain terms.

No HTTP here: `computeapi.web.faults` holds the one table from class to status. Services raise the most specific
class. An error has a class of its own where a caller or a fault text distinguishes it from its siblings.
"""


class Error(Exception):
    """Base of every error the service raises on purpose; `str(error)` is safe to show to a client."""

    text = 'An unexpected error occurred.'

    def __init__(self, message: str | None = None, **kwargs: object):
        super().__init__(message if message is not None else self.text.format(**kwargs))


class NotFound(Error):
    text = 'The resource could not be found.'


class Conflict(Error):
    text = 'There was a conflict when trying to complete your request.'


class Invalid(Error):
    text = 'The server could not comply with the request since it is either malformed or otherwise incorrect.'


class Forbidden(Error):
    text = 'Access was denied to this resource.'


class OverQuota(Forbidden):
    text = 'Quota exceeded.'


class NotAuthenticated(Error):
    text = 'The request you have made requires authentication.'


class TooManyAttempts(NotAuthenticated):
    """Too many failed logins: the client has to wait for `seconds`."""

    text = 'Too many attempts to log in have failed. Try again in {seconds} seconds.'

    def __init__(self, message: str | None = None, *, seconds: int = 1):
        super().__init__(message, seconds=seconds)
        self.seconds = seconds


class IdempotencyKeyReused(Error):
    text = 'This Idempotency-Key was used with a different request.'


class NotSupported(Error):
    """The operation exists, but the driver or the configuration cannot do it."""

    text = 'The requested functionality is not supported.'


class Gone(Error):
    text = 'This resource is no longer available. No forwarding address is given.'


class TooLarge(Error):
    text = 'The request is too large.'


class Unavailable(Error):
    """A service that this one depends on did not answer."""

    text = 'The service is currently unavailable.'


class NeighbourAway(Unavailable):
    """Another OpenStack service that this one depends on cannot be reached, or reports that it cannot work."""

    text = '{name} is currently unavailable.'


class CellDown(Unavailable):
    text = 'Cell {name} does not respond: its resources are not available.'


class DatabaseError(Exception):
    """The database is away, full, locked or slow; `str(error)` is safe to show to a client, `reason` is for the log.

    It is not an Error: code that continues after a refusal by a service must not continue after this.
    """

    def __init__(self, reason: str):
        super().__init__('The database is currently unavailable.')
        self.reason = reason


class ConnectionLost(DatabaseError):
    """The connection was cut: an operation that only reads may be retried at once."""


class Deadlock(DatabaseError):
    """The transaction conflicted with another and was rolled back: it may be retried at once."""


class SignatureVerificationFailed(Invalid):
    text = 'Signature verification for the image failed: {reason}.'


class CertificateValidationFailed(Invalid):
    text = 'Image signature certificate validation failed for certificate: {id}. {reason}'


# Not found


class ServerNotFound(NotFound):
    text = 'Instance {id} could not be found.'


class ServerUnknown(ServerNotFound):
    """The server never existed; the text is that of the lookup of its cell, which comes first."""

    text = 'Instance {id} has no mapping to a cell.'


class FlavorNotFound(NotFound):
    text = 'Flavor {id} could not be found.'


class KeypairNotFound(NotFound):
    text = 'Keypair {name} not found for user {user_id}'


class ImageNotFound(NotFound):
    text = 'Image {id} could not be found.'


class NetworkNotFound(NotFound):
    text = 'Network {id} could not be found.'


class PortNotFound(NotFound):
    text = 'Port id {id} could not be found.'


class SecurityGroupNotFound(NotFound):
    text = 'Security group {id} does not exist'


class SecurityGroupRuleNotFound(NotFound):
    text = 'Security group rule {id} does not exist'


class SubnetNotFound(NotFound):
    text = 'Subnet {id} could not be found.'


class RouterNotFound(NotFound):
    text = 'Router {id} could not be found.'


class QosPolicyNotFound(NotFound):
    text = 'QoS policy {id} could not be found.'


class QosRuleNotFound(NotFound):
    text = 'QoS rule {id} could not be found.'


class AddressScopeNotFound(NotFound):
    text = 'Address scope {id} could not be found'


class SubnetPoolNotFound(NotFound):
    text = 'Subnet pool {id} could not be found.'


class RbacPolicyNotFound(NotFound):
    text = 'RBAC policy of type with ID {id} not found'


class NetworkFlavorNotFound(NotFound):
    text = 'Flavor {id} could not be found.'


class ServiceProfileNotFound(NotFound):
    text = 'Service Profile {id} could not be found.'


class FloatingIPNotFound(NotFound):
    text = 'Floating IP not found for ID {id}'


class FloatingIPPoolNotFound(NotFound):
    text = 'Floating IP pool not found.'


class FixedIPNotFound(NotFound):
    text = "Instance {server_id} doesn't have fixed IP '{address}'."


class DNSDomainNotFound(NotFound):
    text = 'Domain {domain} could not be found.'


class DNSEntryNotFound(NotFound):
    text = 'DNS entries not found.'


class NetworkNotFoundForServer(NotFound):
    text = 'Network could not be found for instance {server_id}.'


class AggregateNotFound(NotFound):
    text = 'Aggregate {id} could not be found.'


class MigrationNotFound(NotFound):
    text = 'Migration {id} not found for instance {server_id}'


class VolumeNotFound(NotFound):
    text = 'Volume {id} could not be found.'


class SnapshotNotFound(NotFound):
    text = 'Snapshot {id} could not be found.'


class VolumeTypeNotFound(NotFound):
    text = 'Volume type {id} could not be found.'


class QosSpecsNotFound(NotFound):
    text = 'QoS specs {id} could not be found.'


class BackupNotFound(NotFound):
    text = 'Backup {id} could not be found.'


class TransferNotFound(NotFound):
    text = 'Transfer {id} could not be found.'


class GroupNotFound(NotFound):
    text = 'Group {id} could not be found.'


class GroupTypeNotFound(NotFound):
    text = 'Group type {id} could not be found.'


class MessageNotFound(NotFound):
    text = 'Message {id} could not be found.'


class AttachmentNotFound(NotFound):
    text = 'Volume attachment {id} could not be found.'


class VolumeNotAttached(NotFound):
    text = 'Instance {server_id} is not attached to volume {id}'


class ComputeHostNotFound(NotFound):
    text = 'Compute host {host} could not be found.'


class HypervisorNotFound(NotFound):
    text = "Hypervisor with ID '{id}' could not be found."


class ServerGroupNotFound(NotFound):
    text = 'Instance group {id} could not be found.'


class ServerActionNotFound(NotFound):
    text = 'Action {request_id} not found'


class ShareNotFound(NotFound):
    text = 'Share {id} could not be found.'


class ShareAccessNotFound(NotFound):
    text = 'Share access rule {id} could not be found.'


class ConsoleTokenNotFound(NotFound):
    text = 'Token not found'


# Conflicts


class ServerLocked(Conflict):
    text = 'Instance {id} is locked'


class DeviceInUse(Conflict):
    text = 'The supplied device path ({path}) is in use.'


class PortInUse(Conflict):
    text = 'Port {id} is still in use.'


class PortNotUsable(Invalid):
    text = 'Port {port_id} not usable for instance {server_id}.'


class PortBindingExists(Conflict):
    text = 'Port {id} is bound on host {host}.'


class PortBindingFailed(Conflict):
    """No mechanism of the network service can bind the port on that host."""

    text = 'Binding of port {id} on host {host} failed.'


class PortNotPlugged(Conflict):
    text = 'The network service did not report within {seconds} s that ports {ids} are connected.'


class NoMoreAddresses(Conflict):
    text = 'Zero fixed ips available.'


class FixedIPInUse(Conflict):
    text = 'Fixed IP {address} is already in use.'


class AddressInUse(Conflict):
    text = 'IP address {address} already allocated in subnet {subnet_id}'


class NetworkInUse(Conflict):
    text = 'Unable to complete operation on network {id}. There are one or more ports still in use on the network.'


class SubnetInUse(Conflict):
    text = 'Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet.'


class QosPolicyInUse(Conflict):
    text = 'QoS policy {id} is used by a network or a port.'


class RouterInUse(Conflict):
    text = 'Router {id} still has ports'


class SecurityGroupInUse(Conflict):
    text = 'Security Group {id} in use.'


class SecurityGroupRuleExists(Conflict):
    text = 'Security group rule already exists. Rule id is {id}.'


class Unreachable(NotFound):
    text = 'External network {network_id} is not reachable from the subnet of port {port_id}: no router connects them.'


class RangeNotSatisfiable(Invalid):
    text = 'The Range requested is not available.'


class RevisionMismatch(Conflict):
    text = 'Constrained to {expected}, but the current revision of {id} is different.'


class FloatingIPInUse(Conflict):
    """The fixed address has a floating IP already."""

    text = 'Cannot associate floating IP {address} with port {port_id}: fixed IP {fixed_address} already has one.'


class MultipleNetworks(Conflict):
    text = 'Multiple possible networks found, use a Network ID to be more specific.'


class ImageNotActive(Conflict):
    text = 'Image {id} is not active.'


class TooManyIdempotencyKeys(OverQuota):
    text = 'You have {count} unexpired Idempotency-Keys, which is the maximum.'


class RequestUnderWay(Conflict):
    text = 'The first request with this Idempotency-Key is still in progress.'


class OutcomeUnknown(Conflict):
    text = (
        'The first request with this Idempotency-Key made changes, but its process ended without a response. Check the '
        'result, and use another key.'
    )
