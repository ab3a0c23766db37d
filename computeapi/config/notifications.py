"""The options of notifications. How they reach a broker is configured with options of oslo.messaging."""

from oslo_config import cfg

NOTIFICATIONS = [
    cfg.StrOpt(
        'notification_format',
        default='none',
        choices=[
            ('none', 'no notifications'),
            ('versioned', 'objects with a version, e.g. instance.create.end'),
            ('unversioned', 'what Ceilometer and Designate read, e.g. compute.instance.create.end'),
            ('both', 'both, to the topics of each'),
        ],
        help='In which format other services are notified of what happens to servers. Notifications '
        'are sent to the broker of [oslo_messaging_notifications]transport_url, or else of [DEFAULT]transport_url, '
        'through the exchange [DEFAULT]control_exchange.',
    ),
    cfg.ListOpt(
        'versioned_notifications_topics',
        default=['versioned_notifications'],
        help='The topics of versioned notifications. Those of unversioned ones are '
        '[oslo_messaging_notifications]topics.',
    ),
    cfg.BoolOpt(
        'bdms_in_notifications',
        default=False,
        help='Whether versioned notifications list the volumes of the server.',
    ),
    cfg.IntOpt(
        'most_waiting',
        default=100_000,
        min=1000,
        help='How many notifications, about, are kept while the broker is unavailable; the oldest are dropped first.',
    ),
]
