"""Callers' tokens in the task queue: encrypted, and kept only as long as the task."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from computeapi.backends.encryption import Cipher
from computeapi.compute.tasks.queue import Tasks, thawed
from computeapi.context import Context
from computeapi.db.tables import metadata

KEY = Fernet.generate_key().decode()
BOB = Context(user_id='bob', project_id='project', roles=frozenset({'member'}), auth_token='token-of-bob')
BESIDE = replace(BOB, service_roles=frozenset({'service'}), is_admin_project=False)
KIND = SimpleNamespace(kind='kind')


@pytest.fixture
def queue_with(store, clock):
    return lambda *keys: Tasks(store, 60, clock, Cipher(keys))


def kept(store):
    """The whole content of the database."""
    with store.read() as connection:
        return str([[*map(str, connection.execute(sa.select(each)))] for each in metadata.sorted_tables])


@pytest.mark.parametrize('context', [BOB, BESIDE], ids=['alone', 'beside'])
def test_a_token_is_kept_encrypted_and_goes_with_its_task(store, queue_with, servers, context):
    queue = queue_with(KEY)
    store.change(queue.add, KIND, servers.add(), context)
    task = queue.claim()
    found = thawed(task.context)
    assert found.auth_token is None and Cipher([KEY]).decrypt(found.sealed_token) == context.auth_token
    assert found == replace(context, auth_token=None, sealed_token=found.sealed_token, service_roles=frozenset())
    assert found.sealed_token in kept(store) and context.auth_token not in kept(store)
    assert store.change(queue.done, task)
    assert found.sealed_token not in kept(store)


def test_a_task_that_a_task_queues_has_its_token(store, queue_with, servers):
    queue = queue_with(KEY)
    store.change(queue.add, KIND, servers.add(), BOB)
    first = thawed(queue.claim().context)
    store.change(queue.add, KIND, servers.add(), first)
    assert thawed(queue.claim().context) == first
    store.change(queue.add, KIND, servers.add(), first.elevated())
    assert thawed(queue.claim().context).sealed_token is None


def test_keys_take_turns(store, queue_with, servers):
    former, new = Fernet.generate_key().decode(), KEY
    store.change(queue_with(former).add, KIND, servers.add(), BOB)
    sealed = thawed(queue_with(new, former).claim().context).sealed_token
    assert Cipher([new, former]).decrypt(sealed) == BOB.auth_token


def test_without_a_key_no_token_is_kept(store, queue_with, servers):
    queue = queue_with()
    store.change(queue.add, KIND, servers.add(), BOB)
    assert thawed(queue.claim().context) == replace(BOB, auth_token=None)
    assert BOB.auth_token not in kept(store)
