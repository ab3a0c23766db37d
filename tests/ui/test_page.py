"""/ui/ as a browser requests it."""

import gzip
import json
import re
from importlib.resources import files

import pytest
import webob

from computeapi import config, kit, serve, ui
from computeapi.serve.directory import opened
from computeapi.ui import pages

FILES = sorted(each.name for each in files(pages).iterdir() if not each.name.endswith('.py') and each.is_file())
SCRIPTS = [name for name in FILES if name.endswith('.js')]


def app_behind(environ, start_response):
    return webob.Response(text=f'behind: {environ["PATH_INFO"]}')(environ, start_response)


@pytest.fixture(scope='module')
def app():
    conf = config.load(overrides={('ui', 'enabled'): True, ('api', 'max_microversion'): '2.60'})
    return ui.beside(app_behind, conf)


def ask(app, path, method='GET', **headers):
    request = webob.Request.blank(path, method=method)
    request.headers.update({name.replace('_', '-'): value for name, value in headers.items()})
    return request.get_response(app)


def test_it_is_there_in_serve_and_elsewhere_when_it_is_asked_for():
    conf = config.load()
    assert ui.beside(app_behind, conf) is app_behind
    with opened(None) as directory:
        serve.configure(conf, directory)
    assert conf.ui.enabled
    conf = config.load(overrides={('ui', 'enabled'): False})
    with opened(None) as directory:
        serve.configure(conf, directory)
    assert not conf.ui.enabled


@pytest.mark.parametrize('path', ['/', '/v2.1/servers', '/uix', '/v2.1/ui/'])
def test_what_is_not_for_the_page_goes_on(app, path):
    assert ask(app, path).text == f'behind: {path}'


def test_a_slash_that_lacks_is_put_where_the_page_is():
    conf = config.load(overrides={('ui', 'enabled'): True})
    answer = ask(ui.beside(app_behind, conf), '/ui')
    assert answer.status_int == 308 and answer.headers['Location'].endswith('/ui/')


def test_no_login_is_offered_where_there_is_no_identity_service():
    conf = config.load(overrides={('ui', 'enabled'): True, ('api', 'auth_strategy'): 'local'})
    app = ui.beside(app_behind, conf)
    assert ask(app, '/ui/session', X_Computeapi_Page='1').json == {'login': False, 'session': None}
    assert ask(app, '/ui/session', 'POST', X_Computeapi_Page='1').status_int == 405


@pytest.mark.parametrize('name', ['', *(name for name in FILES if name != 'index.html')])
def test_every_file_is_sent_as_what_it_is(app, name):
    answer = ask(app, f'/ui/{name}')
    kinds = {'': 'text/html', 'css': 'text/css', 'js': 'text/javascript', 'svg': 'image/svg+xml'}
    assert answer.status_int == 200 and answer.content_type == kinds[name.rpartition('.')[2]]
    if name:
        assert answer.body == files(pages).joinpath(name).read_bytes()


def test_the_page_names_its_scripts_before_they_are_needed(app):
    text = ask(app, '/ui/').text
    assert sorted(re.findall('modulepreload" href="([^"]+)"', text)) == SCRIPTS and '<!--' not in text


@pytest.mark.parametrize('path', ['/ui/', '/ui/main.js', '/ui/reference.json', '/ui/nothing', '/ui'])
def test_nothing_comes_from_elsewhere_and_nothing_may_frame_it(app, path):
    headers = ask(app, path).headers
    policy = dict(each.split(' ', 1) for each in headers['Content-Security-Policy'].split('; '))
    assert policy['default-src'] == policy['frame-ancestors'] == policy['base-uri'] == policy['form-action'] == "'none'"
    assert policy['script-src'] == policy['style-src'] == policy['connect-src'] == policy['img-src'] == "'self'"
    assert headers['X-Content-Type-Options'] == 'nosniff' and headers['Referrer-Policy'] == 'no-referrer'
    assert 'Access-Control-Allow-Origin' not in headers


@pytest.mark.parametrize('name', FILES)
def test_no_file_names_another_place_or_makes_markup(name):
    text = files(pages).joinpath(name).read_text()
    assert set(re.findall(r'https?://[^\s\'"]+', text)) <= {'http://www.w3.org/2000/svg'}
    assert not re.search(r'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|<script>|<style|style=', text)


@pytest.mark.parametrize('name', SCRIPTS)
def test_scripts_import_what_is_there(name):
    text = files(pages).joinpath(name).read_text()
    assert set(re.findall(r"from '\./([^']+)'", text)) <= set(SCRIPTS)
    assert text.startswith('// ') and text.count('\n') < 400


@pytest.mark.parametrize('path', ['/ui/', '/ui/reference.json'])
def test_what_a_browser_has_is_not_sent_again(app, path):
    first = ask(app, path)
    assert first.headers['Cache-Control'] == 'no-cache'
    again = ask(app, path, If_None_Match=first.headers['ETag'])
    assert again.status_int == 304 and again.body == b'' and again.headers['ETag'] == first.headers['ETag']
    assert ask(app, path, If_None_Match='"another"').status_int == 200
    assert ask(app, path, 'HEAD').headers['Content-Length'] == str(len(first.body))


def test_the_document_comes_compressed_to_who_takes_that(app):
    plain = ask(app, '/ui/reference.json')
    zipped = ask(app, '/ui/reference.json', Accept_Encoding='gzip, br')
    assert 'Content-Encoding' not in plain.headers and zipped.headers['Content-Encoding'] == 'gzip'
    assert gzip.decompress(zipped.body) == plain.body and len(zipped.body) * 5 < len(plain.body)
    assert zipped.headers['ETag'] != plain.headers['ETag'] and 'Accept-Encoding' in zipped.headers['Vary']
    assert ask(app, '/ui/reference.json', Accept_Encoding='gzip;q=0').headers.get('Content-Encoding') is None


def test_it_tells_of_the_versions_that_are_offered(app):
    assert ask(app, '/ui/reference.json').json['versions'][-1][0] == '2.60'


@pytest.mark.parametrize(
    'path', ['/ui/nothing', '/ui/../config.py', '/ui/__init__.py', '/ui/%2e%2e/app.py', '/ui/index.html', '/ui/%ff']
)
def test_there_is_nothing_else(app, path):
    assert ask(app, path).status_int == 404


@pytest.mark.parametrize('method', ['POST', 'PUT', 'DELETE', 'OPTIONS'])
def test_it_is_only_read(app, method):
    answer = ask(app, '/ui/reference.json', method)
    assert answer.status_int == 405 and answer.headers['Allow'] == 'GET, HEAD'


NOT_ON_THE_PAGE = {
    # The page shows the same in another way.
    *('show-fault', 'show-webhook', 'show-coverage', 'print-coverage', 'watch-events'),
}


def test_all_that_the_control_api_does_is_on_the_page():
    scripts = ''.join((files(pages) / name).read_text() for name in SCRIPTS)
    for operation in json.loads((files(kit) / 'control.json').read_text()):
        noun = operation['path'].split('/')[1].partition('.')[0]
        used = re.search(rf"['/`]{noun}\b|\b{noun}:", scripts)
        assert used or operation['name'] in NOT_ON_THE_PAGE, operation['path']
