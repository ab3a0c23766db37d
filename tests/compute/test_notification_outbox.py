"""What is not on is neither written nor made."""

import pytest

from computeapi.compute.notifications.outbox import (
    NOBODY,
    NOWHERE,
    UNVERSIONED,
    VERSIONED,
    NewNotification,
    Outbox,
)
from tests.notified import taken


@pytest.fixture
def made():
    return []


@pytest.fixture
def new(made):
    """One notification in each format; *made* notes how far they are made."""

    def generate():
        made.append('begun')
        for form in (UNVERSIONED, VERSIONED):
            yield NewNotification(form, 'happened', lambda form=form: made.append(form) or {'in': form}, source='part')

    return generate()


@pytest.mark.parametrize(('form', 'publisher'), [(UNVERSIONED, 'part.controller'), (VERSIONED, 'nova-part:controller')])
def test_only_formats_that_are_on_are_made(store, new, made, form, publisher):
    store.change(Outbox('controller', [form]).add, NOBODY, new)
    (written,) = taken(store)
    assert (written.format, written.publisher_id, written.payload) == (form, publisher, {'in': form})
    assert made == ['begun', form]


def test_nothing_begins_if_notifications_are_off(store, new, made):
    store.change(NOWHERE.add, NOBODY, new)
    assert taken(store) == made == []
