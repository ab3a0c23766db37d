"""The background work that informs other services of what changes here."""

from computeapi.compute.notifications.sender import Sender
from computeapi.compute.periodic import Periodic
from computeapi.compute.platform import Platform
from computeapi.compute.usage_audits import UsageAuditor

AUDIT_CHECK_SECONDS = 60
"""How often to check whether the period of a usage audit has ended."""


def publishers_of(platform: Platform) -> list[Periodic]:
    """Empty if nobody is to be informed. cfg.ConfigFileValueError for a broker that is not usable."""
    conf, store, found = platform.conf, platform.store, []
    seconds = conf.task_sweep_interval
    if platform.notifications.are_on:
        from computeapi.backends.notifier import Notifier

        most_waiting = conf.notifications.most_waiting
        sender = Sender(store, Notifier(conf).send, most_waiting)
        found.append(Periodic('notifications', sender.catch_up, seconds, store.announced))
        if conf.instance_usage_audit:
            auditor = UsageAuditor(store, platform.notifications, most_waiting)
            found.append(Periodic('usage audit', auditor.catch_up, AUDIT_CHECK_SECONDS))
    if platform.mirror is not None:
        found.append(Periodic('placement', platform.mirror.catch_up, seconds, store.noted))
    return found
