"""A cloud for tests, as a pytest plugin: the fixture `openstack_cloud`.

pytest loads this module in every project of the environment, so it imports the rest only when a test needs it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from computeapi.testing import Cloud

CLOUD = pytest.StashKey['Cloud']()
"""Where a test item keeps its cloud, once it uses one."""
OF_ITSELF = r'ignore::DeprecationWarning:openstack\.', r'ignore::PendingDeprecationWarning:openstack\.'
"""Filters for deprecated calls within openstacksdk. If these are errors, `create_server(wait=True)` waits until its
timeout: it ignores any error while it waits."""


@pytest.fixture(scope='session')
def openstack_cloud_options() -> dict[str, Any]:
    """The arguments of computeapi.testing.Cloud for `openstack_cloud`; override this fixture in a conftest.py."""
    return {}


@pytest.fixture(scope='session')
def openstack_cloud_of_session(openstack_cloud_options: dict[str, Any]) -> Iterator[Cloud]:
    """The cloud behind `openstack_cloud`, created on first use. Use options such as `load` for what all tests are to
    find: later changes are undone by the reset after the next test."""
    from computeapi.testing import Cloud

    with Cloud(**openstack_cloud_options) as cloud:
        yield cloud


@pytest.fixture
def openstack_cloud(openstack_cloud_of_session: Cloud, request: pytest.FixtureRequest) -> Iterator[Cloud]:
    """An OpenStack cloud in this process, a computeapi.testing.Cloud; each test finds it in its initial state."""
    request.node.stash[CLOUD] = openstack_cloud_of_session
    yield openstack_cloud_of_session
    openstack_cloud_of_session.reset()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Ignore deprecated calls within openstacksdk in tests with a cloud, even if warnings are errors there."""
    if 'openstack_cloud_of_session' in getattr(item, 'fixturenames', ()):
        item.add_marker(pytest.mark.filterwarnings(*OF_ITSELF))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add the requests to the cloud to the report of a failed test, or of a failed fixture before it."""
    outcome = yield
    report = outcome.get_result()
    cloud = item.stash.get(CLOUD, None)
    if report.failed and call.when != 'teardown' and cloud is not None and cloud.journal:
        report.sections.append(('What was asked of the cloud', repr(cloud.journal)))


def pytest_assertrepr_compare(left: object, right: object, op: str) -> list[str] | None:
    """Show the requests where a number of requests is not the one that a test asserts."""
    told = [getattr(each, 'told', None) for each in (left, right) if type(each).__name__ == 'Count']
    if not told:
        return None
    return [f'{left!r} {op} {right!r}', *(line for text in told if text for line in text.splitlines())]
