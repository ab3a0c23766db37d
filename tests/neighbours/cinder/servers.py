"""Servers on volumes of a real Cinder, and their resources there."""

import time
import uuid

from tests.backends.implementations import ALICE

NEW_ROOT = {
    'boot_index': 0,
    'source_type': 'image',
    'destination_type': 'volume',
    'volume_size': 1,
    'delete_on_termination': True,
}
BLANK = {'source_type': 'blank', 'destination_type': 'volume', 'volume_size': 1, 'delete_on_termination': True}


class BlockStorage:
    """The resources in Cinder."""

    def __init__(self, running):
        self.mine, self.all = running.service('block-storage', ALICE), running.service('block-storage')

    def volumes(self):
        """The statuses of the project's volumes, by ID."""
        return {each['id']: each['status'] for each in self.mine.get('/volumes/detail').json()['volumes']}

    def volume(self, volume_id):
        return self.all.get(f'/volumes/{volume_id}').json()['volume']

    def attachments(self, server_id):
        path = f'/attachments?all_tenants=1&instance_id={server_id}'
        return self.all.get(path, microversion='3.27').json()['attachments']

    def users(self, volume_id):
        """The hosts that use a volume."""
        return [each['host_name'] for each in self.volume(volume_id)['attachments']]

    def create(self, **kwargs):
        """Creates a volume; returns its ID when it is available."""
        volume_id = self.mine.post('/volumes', json={'volume': {'size': 1, **kwargs}}).json()['volume']['id']
        self.settled(volume_id)
        return volume_id

    def reserved(self):
        """Creates a volume reserved for a server that compute does not know; returns its ID."""
        volume_id = self.create()
        asked = {'volume_uuid': volume_id, 'instance_uuid': str(uuid.uuid4())}
        self.mine.post('/attachments', json={'attachment': asked}, microversion='3.27')
        return volume_id

    def settled(self, volume_id, *statuses):
        """Wait until the volume has one of these statuses, or by default no transitional one."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status = self.volume(volume_id)['status']
            if status in statuses or not statuses and not status.endswith('ing'):
                return status
            time.sleep(0.1)
        raise TimeoutError(status)

    def empty(self):
        """Wait until the project has no volumes."""
        deadline = time.monotonic() + 30
        while left := self.volumes():
            assert time.monotonic() < deadline, left
            time.sleep(0.1)


def on_volume(compute, image_id, *more, **kwargs):
    """Creates a server on a volume created from the image; returns its ID."""
    devices = [{**NEW_ROOT, 'uuid': image_id}, *more]
    answer = compute.create(imageRef='', block_device_mapping_v2=devices, **kwargs)
    assert answer.status_code == 202, answer.text
    return answer.json['server']['id']


def attached(compute, server_id):
    path = f'GET /servers/{server_id}/os-volume_attachments'
    return {each['volumeId']: each['attachment_id'] for each in compute.ask(ALICE, path).json['volumeAttachments']}


def attach(compute, server_id, volume_id):
    body = {'volumeAttachment': {'volumeId': volume_id}}
    return compute.ask(ALICE, f'POST /servers/{server_id}/os-volume_attachments', body)


def detach(compute, server_id, volume_id):
    return compute.ask(ALICE, f'DELETE /servers/{server_id}/os-volume_attachments/{volume_id}')


def delete(compute, server_id):
    assert compute.ask(ALICE, f'DELETE /servers/{server_id}').status_code == 204
    compute.gone(server_id)
