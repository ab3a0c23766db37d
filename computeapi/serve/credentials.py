"""What a user needs to use the service: an openrc file, a clouds.yaml and a curl command."""

import json
import shlex
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from computeapi import __version__
from computeapi.backends.image import blank
from computeapi.serve.directory import Directory

# Clients find the versions of each service below these paths by themselves.
ROOTS = {
    'compute': '/compute',
    'identity': '/identity',
    'image': '/image',
    'network': '/networking',
    'volume': '/volume',
    'block_storage': '/volume',
    'shared_file_system': '/share',
}

GREETING = """\
computeapi {version} is ready at {url} (Ctrl-C stops it).
{page}Its data is in {folder}{fate}.
"""
PAGE = 'Open {url}/ui/ in a browser to see what it contains and can do.\n'
FILES = """
Settings for a shell{openrc}

Settings for clients{clouds}

Try:

    . {folder}/openrc
    openstack server create --image {image} --flavor m1.tiny --network private --wait first

    {curl}
"""


def show(
    url: str, strategy: str, passwords: Mapping[str, str], directory: Directory, *, secrets: bool, page: bool = False
) -> str:
    """The greeting; what it contains with `secrets` is also in files in the directory.

    page: whether there is a web interface.
    """
    folder, fate = directory.path, ' and is deleted when it stops' if directory.temporary else ''
    greeting = GREETING.format(
        version=__version__, url=url, folder=folder, fate=fate, page=PAGE.format(url=url) if page else ''
    )
    if strategy == 'keystone':
        return greeting
    clouds = yaml.safe_dump(clouds_of(url, strategy, passwords), sort_keys=False)
    openrc = openrc_of(url, passwords['admin']) if strategy == 'local' else openrc_by_cloud(directory)
    shown = {
        'openrc': _kept(directory.write('openrc', openrc), openrc, secrets),
        'clouds': _kept(directory.write('clouds.yaml', clouds), clouds, secrets),
        # The versions can be listed without credentials.
        'curl': curl(url, strategy, passwords['admin']) if secrets else f'curl {url}',
    }
    return greeting + FILES.format(folder=folder, image=blank.NAME, **shown)


def _kept(path: Path, text: str, shown: bool) -> str:
    return f', also in {path}:\n\n{_indented(text)}' if shown else f' are in {path}.'


def clouds_of(url: str, strategy: str, passwords: Mapping[str, str]) -> dict[str, Any]:
    """The content of a clouds.yaml: `computeapi` for the administrator, `computeapi-USER` for others."""
    clouds = {
        user: cloud_of(url, user, password) if strategy == 'local' else cloud_at(url, strategy, user, password)
        for user, password in passwords.items()
    }
    return {'clouds': {name_of(user): clouds[user] for user in clouds}}


def name_of(user: str) -> str:
    """The name of the cloud of a user in clouds.yaml."""
    return 'computeapi' if user == 'admin' else f'computeapi-{user}'


def cloud_of(url: str, user: str, password: str) -> dict[str, Any]:
    """A cloud with a service catalog."""
    auth = {
        'auth_url': f'{url}/identity/v3',
        'username': user,
        'password': password,
        'project_name': user,
        'user_domain_name': 'Default',
        'project_domain_name': 'Default',
    }
    return {'auth': auth, 'region_name': 'RegionOne', 'identity_api_version': 3}


def cloud_at(url: str, strategy: str, user: str, password: str) -> dict[str, Any]:
    """A cloud without tokens, and therefore without a catalog."""
    auth = {'endpoint': url + ROOTS['compute']}
    if strategy == 'http_basic':
        auth |= {'username': user, 'password': password}
    return {'auth_type': strategy, 'auth': auth} | {
        f'{each}_endpoint_override': url + path for each, path in ROOTS.items()
    }


def openrc_of(url: str, password: str) -> str:
    """The environment variables of the administrator, for a shell."""
    return _exports(variables_of(cloud_of(url, 'admin', password)))


def variables_of(cloud: Mapping[str, Any]) -> dict[str, str]:
    """The environment variables for a cloud in clouds.yaml."""
    facts = {**cloud['auth'], **{name: value for name, value in cloud.items() if name != 'auth'}}
    return {f'OS_{name.upper()}': str(value) for name, value in facts.items()}


def openrc_by_cloud(directory: Directory) -> str:
    """The same with a clouds.yaml, because only that can have a URL for each service."""
    return _exports({'OS_CLIENT_CONFIG_FILE': str(directory.path / 'clouds.yaml'), 'OS_CLOUD': 'computeapi'})


def curl(url: str, strategy: str, password: str) -> str:
    """A shell command that lists the flavors."""
    flavors = f'{url}/v2.1/flavors'
    if strategy == 'none':
        return f'curl {flavors}'
    if strategy == 'http_basic':
        return f'curl -u {shlex.quote(f"admin:{password}")} {flavors}'
    user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': password}
    login = shlex.quote(json.dumps({'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}}))
    token = f'curl -si {url}/identity/v3/auth/tokens -H "Content-Type: application/json" -d {login}'
    return f"""curl -H "X-Auth-Token: $({token} | awk -F'[ \\r]' '/^X-Subject-Token/ {{print $2}}')" {flavors}"""


def _exports(variables: Mapping[str, str]) -> str:
    return '\n'.join(f'export {name}={shlex.quote(value)}' for name, value in variables.items())


def _indented(text: str) -> str:
    return textwrap.indent(text.strip(), '    ')
