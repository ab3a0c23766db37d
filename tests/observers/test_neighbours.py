"""Calls to other services are counted by service and outcome, and carry the current trace."""

import pytest
from opentelemetry.sdk.trace import TracerProvider

from computeapi import config
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.errors import NeighbourAway
from computeapi.main import Service
from computeapi.observers.metrics import Metrics
from computeapi.observers.traces import Traces
from tests.api.test_auth import identity  # noqa: F401
from tests.api.test_keystone import cloud_with, proxy, recorded, url  # noqa: F401
from tests.backends.test_neighbour import ALICE, PASSWORD, ask, cloud, service, service_with  # noqa: F401
from tests.observers.test_metrics import read, scrape


@pytest.fixture
def metrics(tmp_path):
    store = Store(f'sqlite:///{tmp_path}/counted.db')
    yield Metrics(config.load([]).metrics, store)
    store.close()


def calls(metrics):
    """{(service, outcome): number}."""
    found = read(metrics.exposition().decode())
    return {key[1:]: value for key, value in found.items() if key[0] == 'computeapi_neighbour_calls_total'}


def test_a_call_is_counted_for_whom_it_asks(service, metrics):
    service.around.append(metrics.neighbours)
    ask(service, ALICE)
    first = calls(metrics)
    ask(service, ALICE)
    assert first.keys() == {('Keystone', 'ok'), ('Cinder', 'ok')}
    assert calls(metrics) == first | {('Cinder', 'ok'): first['Cinder', 'ok'] + 1}


@pytest.mark.parametrize(('status', 'outcome'), [(404, 'refused'), (500, 'failed'), (503, 'away')])
def test_what_came_of_it(cloud, service, metrics, status, outcome):
    cloud.answers['volumes'] = status
    service.around.append(metrics.neighbours)
    with pytest.raises(Exception, match='.'):
        ask(service, ALICE)
    assert calls(metrics)['Cinder', outcome] == 1


def test_it_is_keystone_that_is_away(cloud, service, metrics):
    cloud.keystone = 503
    service.around.append(metrics.neighbours)
    with pytest.raises(NeighbourAway):
        ask(service, Context(is_admin=True))
    found = calls(metrics)
    assert found['Keystone', 'away'] >= 1 and not [key for key in found if key[0] == 'Cinder']


def test_neighbours_hear_of_the_trace(cloud, service):
    traces = Traces(TracerProvider())
    service.around.append(traces.neighbours)
    with traces.step('test'):
        trace = traces.mark()['traceparent'].split('-')[1]
        ask(service, ALICE)
    assert cloud.asked[0].headers['traceparent'].split('-')[1] == trace


def test_tokens_that_keystone_is_asked_about_are_counted(cloud_with, url, monkeypatch):
    monkeypatch.setenv('OS_METRICS__ENABLED', 'true')
    compute = cloud_with(url)
    demo = compute.credentials('demo')
    assert [compute.ask('GET /v2.1/flavors', demo).status_code for _ in range(2)] == [200] * 2
    found = scrape(compute.app)
    assert {key[1:] for key in found if key[0] == 'computeapi_neighbour_calls_total'} == {('Keystone', 'ok')}


def test_who_asks_neighbours_is_observed(conf, store):
    """The services of a Service, as it is composed."""
    conf = config.load(overrides={('metrics', 'enabled'): True, ('image', 'backend'): 'glance'})
    service = Service(conf, store)
    assert service.images.service.around == [service.metrics.neighbours]
    assert not hasattr(service.networks, 'service')
