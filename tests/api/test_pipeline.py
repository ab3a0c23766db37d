"""The filters of oslo.middleware are set up by the service's own configuration file."""

import pytest
import webob

from computeapi import config
from computeapi.main import Service

DASHBOARD = 'https://dashboard.example.org'
CONF = f"""
[api]
auth_strategy = none
[cors]
allowed_origin = {DASHBOARD}
[oslo_middleware]
enable_proxy_headers_parsing = true
max_request_body_size = 1000
"""


@pytest.fixture
def ask(store, tmp_path):
    path = tmp_path / 'computeapi.conf'
    path.write_text(CONF + f'[standalone]\ndata_dir = {tmp_path}\n')
    app = Service(config.load([str(path)]), store).load('compute')
    return lambda path, method='GET', **more: webob.Request.blank(path, method=method, **more).get_response(app)


def test_a_browser_may_use_versions_from_another_origin(ask):
    wanted = {
        'Origin': DASHBOARD,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'X-Auth-Token,OpenStack-API-Version',
    }
    preflight = ask('/v2.1/flavors', 'OPTIONS', headers=wanted)
    assert preflight.headers['Access-Control-Allow-Origin'] == DASHBOARD
    assert 'OpenStack-API-Version' in preflight.headers['Access-Control-Allow-Headers']
    answer = ask('/v2.1/flavors', headers={'Origin': DASHBOARD})
    assert 'OpenStack-API-Version' in answer.headers['Access-Control-Expose-Headers']
    assert 'Access-Control-Allow-Origin' not in ask('/v2.1/flavors', headers={'Origin': 'https://else.where'}).headers


def test_links_are_those_that_a_proxy_was_asked_for(ask):
    headers = {'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'cloud.example.org', 'X-Forwarded-Prefix': '/compute'}
    (link,) = ask('/v2.1/', headers=headers).json['version']['links'][:1]
    assert link['href'] == 'https://cloud.example.org/compute/v2.1/'


def test_bodies_have_a_size(ask):
    assert ask('/v2.1/flavors', 'POST', body=b'x' * 2000, content_type='application/json').status_code == 413
