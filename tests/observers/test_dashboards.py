"""The metrics, labels and label values that dashboards and alerts use exist."""

import json
import re
from pathlib import Path

import pytest
import yaml

from computeapi.observers.families import FAMILIES

FOLDER = Path(__file__).parents[2] / 'etc/computeapi'
DASHBOARD = json.loads((FOLDER / 'grafana-dashboard.json').read_text())
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / 'prometheus-alerts.yaml').read_text())['groups']
    for rule in group['rules']
]
PANELS = [panel for panel in DASHBOARD['panels'] if panel['type'] != 'row']
ASKED = [target['expr'] for panel in PANELS for target in panel['targets']] + [rule['expr'] for rule in RULES]
VARIABLES = [variable['query']['query'] for variable in DASHBOARD['templating']['list'] if variable['type'] == 'query']

OF_TARGETS = {'job', 'instance'}
"""The labels that Prometheus itself adds to each metric."""
OF_HISTOGRAMS = {'bucket': {'le'}, 'sum': set(), 'count': set()}


def family_of(name):
    """The family of a time series, and its labels besides those of the family; raises KeyError."""
    if name in FAMILIES and FAMILIES[name].kind != 'histogram':
        return FAMILIES[name], set()
    base, _, part = name.rpartition('_')
    return {name: each for name, each in FAMILIES.items() if each.kind == 'histogram'}[base], OF_HISTOGRAMS[part]


@pytest.mark.parametrize('expression', ASKED + VARIABLES)
def test_metrics_and_their_labels_are_there(expression):
    named = re.findall(r'(computeapi_\w+)(?:\{([^}]*)\})?', expression)
    assert named
    labels = set(OF_TARGETS)
    for name, selector in named:
        family, more = family_of(name)
        assert set(re.findall(r'(\w+)\s*=', selector)) <= {*family.labels, *OF_TARGETS}
        labels |= {*family.labels, *more}
    grouped = {label.strip() for labels in re.findall(r'\bby \(([^)]*)\)', expression) for label in labels.split(',')}
    assert grouped <= labels
    assert ('histogram_quantile' in expression) == any(name.endswith('_bucket') for name, _ in named)


def test_a_name_that_is_not_there_is_found():
    for name in ('computeapi_nothing', 'computeapi_request_seconds', 'computeapi_tasks_bucket'):
        with pytest.raises(KeyError):
            family_of(name)


def test_every_metric_is_on_the_dashboard():
    shown = {name for expression in ASKED for name in re.findall(r'computeapi_\w+', expression)}
    shown |= {name.rpartition('_')[0] for name in shown if name.endswith('_bucket')}
    assert shown >= FAMILIES.keys()


def test_a_counter_is_asked_how_fast_it_grows():
    for expression in ASKED:
        for name in re.findall(r'(\w*)\(computeapi_\w+_(?:total|bucket)', expression):
            assert name in ('rate', 'increase'), expression


def test_panels_have_places_of_their_own():
    places = [panel['gridPos'] for panel in DASHBOARD['panels']]
    taken = [(x, y) for p in places for x in range(p['x'], p['x'] + p['w']) for y in range(p['y'], p['y'] + p['h'])]
    assert len(taken) == len(set(taken))
    assert len({panel['id'] for panel in DASHBOARD['panels']}) == len(places)


def test_alerts_say_what_is_the_matter():
    assert len({rule['alert'] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule['annotations']['summary'] and rule['labels']['severity'] in ('info', 'warning', 'critical')
