"""Messages that tell users why a request to the volume service failed later on."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from computeapi import randomness
from computeapi.backends.volume import Volume
from computeapi.backends.volume.local.records import Records
from computeapi.context import Context
from computeapi.db.volumes import MESSAGES, expired_messages

KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Message:
    """`event_id` is for programs, `user_message` for people; the message may be deleted after `guaranteed_until`."""

    id: str
    project_id: str
    request_id: str | None
    resource_type: str
    resource_uuid: str
    event_id: str
    user_message: str
    message_level: str
    created_at: datetime
    guaranteed_until: datetime


class VolumeMessages(Records[Message]):
    table, record = MESSAGES, Message

    def add(self, connection: sa.Connection, context: Context, volume: Volume, event: str, text: str) -> None:
        """Add a message for the volume's project; deletes expired messages."""
        now = self.clock()
        MESSAGES.delete(connection, expired_messages(now))
        message = Message(
            id=randomness.new_id(),
            project_id=volume.project_id,
            request_id=context.request_id,
            resource_type='VOLUME',
            resource_uuid=volume.id,
            event_id=event,
            user_message=text,
            message_level='ERROR',
            created_at=now,
            guaranteed_until=now + KEPT,
        )
        MESSAGES.insert(connection, vars(message))

    def delete(self, context: Context, message_id: str) -> None:
        with self._locked(context, message_id) as (connection, _):
            MESSAGES.delete(connection, MESSAGES.among([message_id]))
