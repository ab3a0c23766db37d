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
        help='In which format other services are notified of what happens in the cloud. Notifications '
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
    cfg.StrOpt(
        'notify_on_state_change',
        default='none',
        choices=[
            ('none', 'only new tags'),
            ('vm_state', 'new vm_states, names, descriptions, metadata and tags'),
            ('vm_and_task_state', 'new task_states, too'),
        ],
        help='Of which updates of servers other services are notified, besides the steps of actions.',
    ),
    cfg.IntOpt(
        'most_waiting',
        default=100_000,
        min=1000,
        help='How many notifications, about, are kept while the broker is unavailable; the oldest are dropped first.',
    ),
]

USAGE_AUDITS = [
    cfg.BoolOpt(
        'instance_usage_audit',
        default=False,
        help='Whether other services are notified, at the end of each period, of all servers that were used in it '
        '(instance.exists), if notifications are on.',
    ),
    cfg.StrOpt(
        'instance_usage_audit_period',
        default='month',
        regex=r'^(hour(@[0-5]?\d)?|day(@([01]?\d|2[0-3]))?|month(@([01]?\d|2[0-8]))?|year(@(0?\d|1[0-2]))?)$',
        help='The period of usage audits: hour, day, month or year, in UTC. After @, it can start later: hour@30 '
        'at half past, day@12 at noon, month@15 on the 15th, year@7 in July.',
    ),
]
