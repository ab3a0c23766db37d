"""The list of extensions is fixed; /v2 has one more."""

import pytest

BOB = 'bob:project'


def keys(answer):
    return [(each['alias'], each['name'], each['links']) for each in answer['extensions']]


@pytest.mark.parametrize('version', ['2.1', '2.104'])
def test_list(api, sample, shape, version):
    listed = api.get('/extensions', version, as_=BOB).json
    recorded = sample('extension-info/extensions-list-resp.json')
    assert keys(listed) == keys(recorded)
    assert shape(listed) == shape(recorded)


def test_list_on_v2(legacy, sample):
    recorded = sample('extension-info/extensions-list-resp-v21-compatible.json')
    assert keys(legacy.get('/extensions', as_=BOB).json) == keys(recorded)


def test_show(api, legacy, sample):
    shown = api.get('/extensions/os-agents', as_=BOB)
    assert shown.json == sample('extension-info/extensions-get-resp.json')
    missing = api.get('/extensions/nothing', as_=BOB)
    assert (missing.status, missing.json['itemNotFound']['message']) == (404, 'The resource could not be found.')
    assert api.get('/extensions/OS-EXT-VIF-NET').status == 404
    assert legacy.get('/extensions/OS-EXT-VIF-NET').status == 200
