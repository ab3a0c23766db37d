"""Hands notifications to a broker, by oslo.messaging.

Its own Notifier only logs when the broker is away; here the caller must know, and a notification that is sent again
must have the same ID.
"""

from oslo_config import cfg

from computeapi import bus
from computeapi.db.notifications import WaitingNotification
from computeapi.errors import NeighbourAway

VERSION = 2.0
"""The format of the envelope: that of the driver messagingv2."""


class Notifier:
    """The broker of a configuration; cfg.ConfigFileValueError if it is not usable."""

    def __init__(self, conf: cfg.ConfigOpts):
        bus.register(conf)
        self.library, self.broker_errors = bus.library(), bus.broker_errors()
        try:
            self.transport = self.library.get_notification_transport(conf)
        except (self.library.MessagingException, cfg.Error, ValueError) as error:
            raise cfg.ConfigFileValueError(f'[{bus.NOTIFICATIONS}]transport_url: {error}') from None
        self.topics = {
            'unversioned': conf[bus.NOTIFICATIONS].topics,
            'versioned': conf.notifications.versioned_notifications_topics,
        }

    def send(self, notification: WaitingNotification) -> None:
        """Send to the topics of its format; NeighbourAway if the broker does not accept it."""
        message = {
            'message_id': notification.message_id,
            'publisher_id': notification.publisher_id,
            'event_type': notification.event_type,
            'priority': notification.priority.upper(),
            'payload': notification.payload,
            'timestamp': str(notification.created_at),
        }
        for topic in self.topics[notification.format]:
            target = self.library.Target(topic=f'{topic}.{notification.priority}')
            try:
                self.transport._send_notification(target, notification.context, message, version=VERSION, retry=0)
            except (self.library.MessagingException, *self.broker_errors) as error:
                raise NeighbourAway(name='the message broker') from error
