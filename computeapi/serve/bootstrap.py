"""The initial content of a cloud: users, an image, networks, volume types and flavors."""

import contextlib

from computeapi import randomness
from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.image.local import LocalImages
from computeapi.backends.network.local import LocalNetworks
from computeapi.backends.registry import built_in
from computeapi.backends.volume.local import LocalVolumes
from computeapi.errors import Conflict
from computeapi.main import Service
from computeapi.serve.directory import Directory

CATALOG = (
    {'type': 'compute', 'name': 'nova', 'path': '/v2.1'},
    {'type': 'computev21', 'name': 'novav21', 'path': '/v2.1'},
    {'type': 'identity', 'name': 'keystone', 'path': '/identity'},
    {'type': 'image', 'name': 'glance', 'path': '/image'},
    {'type': 'network', 'name': 'neutron', 'path': '/networking'},
    {'type': 'volumev3', 'name': 'cinderv3', 'path': '/volume/v3'},
    {'type': 'block-storage', 'name': 'cinder', 'path': '/volume/v3'},
    {'type': 'sharev2', 'name': 'manilav2', 'path': '/share/v2'},
    {'type': 'shared-file-system', 'name': 'manila', 'path': '/share/v2'},
)
FLAVORS = (
    # id, name, vCPUs, memory in MiB, disk in GiB
    ('1', 'm1.tiny', 1, 512, 1),
    ('2', 'm1.small', 1, 2048, 20),
    ('3', 'm1.medium', 2, 4096, 40),
    ('4', 'm1.large', 4, 8192, 80),
    ('5', 'm1.xlarge', 8, 16384, 160),
)
ADMIN, DEMO = USERS = ('admin', 'demo')
"""Each has a project of the same name, with a network."""
DONE = 'populated'


def prepare(service: Service, directory: Directory, admin_password: str | None) -> dict[str, str]:
    """Create the initial content, on the first start; returns the passwords of the users.

    Passwords are stored in the directory. A new one for the administrator replaces the previous one. Content that a
    user deletes later is not created again.
    """
    identity = built_in('identity', LocalIdentity, service.identity)
    identity.catalog.announce(CATALOG)
    passwords = {}
    for name in USERS:
        kept = directory.read(f'{name}-password')
        given = admin_password if name == ADMIN else None
        passwords[name] = given or kept or randomness.password(name)
        if passwords[name] != kept:
            change_password(identity, name, passwords[name])
            directory.write(f'{name}-password', passwords[name])
    if directory.read(DONE) is None:
        populate(service, identity, passwords)
        directory.write(DONE, 'What a cloud begins with has been made.')
    return passwords


def change_password(identity: LocalIdentity, name: str, password: str) -> None:
    """Change the password of a user, if the user exists."""
    for user in identity.users.list(name=name, domain_id='default'):
        identity.users.update(user.id, password=password)


def populate(service: Service, identity: LocalIdentity, passwords: dict[str, str]) -> None:
    """Create the content; what exists already is unchanged."""
    identity.populate(passwords[ADMIN], passwords[DEMO])
    context = identity.acting_as(ADMIN)
    built_in('image', LocalImages, service.images).populate(context.project_id)
    networks = built_in('network', LocalNetworks, service.networks)
    networks.populate(context, shared=False)
    networks.resources.populate_project(identity.acting_as(DEMO), DEMO)
    built_in('volume', LocalVolumes, service.volumes).populate()
    common = {'ephemeral_gb': 0, 'swap': 0, 'rxtx_factor': 1.0, 'is_public': True}
    for flavorid, name, vcpus, memory_mb, root_gb in FLAVORS:
        size = {'vcpus': vcpus, 'memory_mb': memory_mb, 'root_gb': root_gb}
        with contextlib.suppress(Conflict):
            service.cloud.flavors.create(context, name, flavorid=flavorid, **size, **common)
