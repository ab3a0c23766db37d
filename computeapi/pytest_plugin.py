"""A cloud in tests, for whoever has pytest: the fixture `openstack_cloud`.

pytest loads this module in every project of the environment, so it imports the rest when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from computeapi.testing import Cloud


@pytest.fixture(scope='session')
def openstack_cloud_options() -> dict[str, Any]:
    """What `openstack_cloud` is made with, as computeapi.testing.Cloud takes it; for a conftest.py to say otherwise."""
    return {}


@pytest.fixture(scope='session')
def openstack_cloud_of_session(openstack_cloud_options: dict[str, Any]) -> Iterator[Cloud]:
    """The cloud behind `openstack_cloud`, made when it is first asked for. What all tests are to find, its options say,
    such as `load`: what is done to it afterwards, the reset after the next test takes away."""
    from computeapi.testing import Cloud

    with Cloud(**openstack_cloud_options) as cloud:
        yield cloud


@pytest.fixture
def openstack_cloud(openstack_cloud_of_session: Cloud) -> Iterator[Cloud]:
    """An OpenStack cloud in this process, which each test finds as it was at first: a computeapi.testing.Cloud."""
    yield openstack_cloud_of_session
    openstack_cloud_of_session.reset()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """What was asked of the cloud, below what is told of a test that failed."""
    outcome = yield
    report = outcome.get_result()
    journal = getattr(getattr(item, 'funcargs', {}).get('openstack_cloud'), 'journal', None)
    if report.failed and call.when == 'call' and journal:
        report.sections.append(('What was asked of the cloud', repr(journal)))


def pytest_assertrepr_compare(left: object, right: object, op: str) -> list[str] | None:
    """What was asked, where a number of requests is not what a test says it must be."""
    told = [getattr(each, 'told', None) for each in (left, right) if type(each).__name__ == 'Count']
    if not told:
        return None
    return [f'{left!r} {op} {right!r}', *(line for text in told if text for line in text.splitlines())]
