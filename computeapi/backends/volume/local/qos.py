"""QoS specs: what volume types require of the hosts that use volumes, or of the storage that holds them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from computeapi import errors, randomness
from computeapi.backends.volume import VolumeType
from computeapi.backends.volume.local.records import Records
from computeapi.context import Context
from computeapi.db import volume_types
from computeapi.db.engine import conflicts
from computeapi.db.volume_types import QOS, TYPES

MAX_SPECS = 64


@dataclass(frozen=True)
class QosSpecs:
    """Limits by name, such as total_iops_sec; the consumer, which enforces them, is front-end, back-end or both."""

    id: str
    name: str
    consumer: str
    created_at: datetime
    specs: Mapping[str, str] = field(default_factory=dict)


class VolumeQos(Records[QosSpecs]):
    """QoS specs; the caller checks who may see and change them."""

    table, record = QOS, QosSpecs

    def create(self, name: str, consumer: str, specs: Mapping[str, str]) -> QosSpecs:
        made = QosSpecs(randomness.new_id(), name, consumer, self.clock(), checked(specs))
        with conflicts(f'QoS specs {name} already exists.'), self.store.write() as connection:
            QOS.insert(connection, vars(made))
        return made

    def set(self, context: Context, qos_id: str, specs: Mapping[str, str]) -> QosSpecs:
        """Add to the specs; a `consumer` among them replaces the consumer."""
        consumer = {'consumer': specs['consumer']} if 'consumer' in specs else {}
        more = {name: value for name, value in specs.items() if name != 'consumer'}
        return self.change(context, qos_id, lambda found: {**consumer, 'specs': checked({**found.specs, **more})})

    def unset(self, context: Context, qos_id: str, names: Iterable[str]) -> None:
        wanted = set(names)

        def change(found: QosSpecs) -> Mapping[str, Mapping[str, str]]:
            if missing := wanted - found.specs.keys():
                raise errors.Invalid(f'QoS specs {qos_id} have no spec with key {min(missing)}.')
            return {'specs': {name: value for name, value in found.specs.items() if name not in wanted}}

        self.change(context, qos_id, change)

    def delete(self, context: Context, qos_id: str, *, force: bool = False) -> None:
        """Raises Invalid while types use the specs, unless `force` is set."""
        with self._locked(context, qos_id) as (connection, _):
            if not force and TYPES.select(connection, volume_types.types_with_qos(qos_id)):
                raise errors.Invalid(f'QoS Specs {qos_id} is still associated with entities.')
            volume_types.set_qos(connection, volume_types.types_with_qos(qos_id), None)
            QOS.delete(connection, QOS.among([qos_id]))

    def types(self, context: Context, qos_id: str) -> list[VolumeType]:
        """The types that use the specs."""
        with self.store.read() as connection:
            QOS.get(connection, context, qos_id)
            return [VolumeType(**facts) for facts in TYPES.select(connection, volume_types.types_with_qos(qos_id))]

    def associate(self, context: Context, qos_id: str, type_id: str) -> None:
        """Raises Invalid if the type has other specs."""
        with self._locked(context, qos_id) as (connection, _):
            kind = VolumeType(**TYPES.get(connection, context, type_id, lock=True))
            if kind.qos_specs_id not in (None, qos_id):
                raise errors.Invalid(f'Type {type_id} is already associated with another qos specs.')
            volume_types.set_qos(connection, TYPES.among([type_id]), qos_id)

    def disassociate(self, context: Context, qos_id: str, type_id: str | None = None) -> None:
        """Without a type, disassociate from all types."""
        with self._locked(context, qos_id) as (connection, _):
            where = volume_types.types_with_qos(qos_id)
            if type_id is not None:
                TYPES.get(connection, context, type_id)
                where = where & TYPES.among([type_id])
            volume_types.set_qos(connection, where, None)


def checked(specs: Mapping[str, str]) -> dict[str, str]:
    if len(specs) > MAX_SPECS:
        raise errors.Invalid(f'specs must not have more than {MAX_SPECS} items.')
    return dict(specs)
