"""Boots a web server in an OpenStack cloud."""

import time

from openstack.exceptions import HttpException


def boot(cloud, name, image, flavor):
    """Create a server with its own network and key pair; return it once it is ACTIVE."""
    network = cloud.network.create_network(name=name)
    cloud.network.create_subnet(name=name, network_id=network.id, cidr='10.9.0.0/24', ip_version=4)
    cloud.compute.create_keypair(name=name)
    server = create(
        cloud,
        name=name,
        image_id=cloud.image.find_image(image, ignore_missing=False).id,
        flavor_id=cloud.compute.find_flavor(flavor, ignore_missing=False).id,
        networks=[{'uuid': network.id}],
        key_name=name,
    )
    return cloud.compute.wait_for_server(server, interval=0.1)


def create(cloud, **facts):
    """Tries up to three times while the cloud is busy."""
    for tries_left in (2, 1, 0):
        try:
            return cloud.compute.create_server(**facts)
        except HttpException as error:
            if error.status_code != 503 or not tries_left:
                raise
        time.sleep(0.1)
