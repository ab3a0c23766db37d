"""The behaviour of every share backend."""

import pytest

from computeapi import errors
from tests.backends.implementations import ADMIN, ALICE, BOB, SHARE

MISSING = '00000000-0000-4000-8000-00000000dead'
HERE, THERE = '192.0.2.1', '192.0.2.2'


@pytest.fixture(params=SHARE)
def service(request, store):
    return request.param(store)


@pytest.fixture
def shares(service):
    return service.shares


def test_a_share_says_where_it_is_mounted_from(service, shares):
    found = [shares.get(ALICE, service.share(ALICE, protocol)) for protocol in ('NFS', 'CEPHFS')]
    assert [(share.status, share.protocol, share.project_id) for share in found] == [
        ('available', 'NFS', 'apples'),
        ('available', 'CEPHFS', 'apples'),
    ]
    assert len({share.export_location for share in found} - {None}) == 2


def test_shares_are_their_projects(service, shares):
    private, public = service.share(ALICE), service.share(ALICE, is_public=True)
    assert shares.get(ADMIN, private).id == private
    assert shares.get(BOB, public).id == public
    for share_id in (private, MISSING):
        with pytest.raises(errors.ShareNotFound):
            shares.get(BOB, share_id)


def test_hosts_are_let_in_and_locked_out(service, shares):
    share_id = service.share(ALICE)
    for address in (HERE, HERE, THERE):
        shares.allow(ADMIN, share_id, address)
    assert sorted(service.addresses(share_id)) == [HERE, THERE]
    for address in (HERE, HERE):
        shares.deny(ADMIN, share_id, address)
    assert service.addresses(share_id) == [THERE]


def test_nobody_deletes_what_a_host_may_mount(service, shares):
    share_id = service.share(ALICE)
    shares.allow(ADMIN, share_id, HERE)
    with pytest.raises(errors.Forbidden):
        service.delete(ALICE, share_id)
    shares.deny(ADMIN, share_id, HERE)
    service.delete(ALICE, share_id)
    shares.deny(ADMIN, share_id, HERE)
    with pytest.raises(errors.ShareNotFound):
        shares.allow(ADMIN, share_id, HERE)
