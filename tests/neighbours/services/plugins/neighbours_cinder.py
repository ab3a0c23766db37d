"""A volume driver without data: every volume exists as soon as it is requested, whatever its size."""

import io

from cinder.volume import driver

SPACE_GB = 1_000_000
BYTES = 64 * 1024


class HoldsNothing(driver.VolumeDriver):
    VERSION = '1'

    def check_for_setup_error(self):
        pass

    def get_volume_stats(self, refresh=False):
        pool = {
            'pool_name': 'pool',
            'total_capacity_gb': SPACE_GB,
            'free_capacity_gb': SPACE_GB,
            'reserved_percentage': 0,
            'multiattach': True,
            'online_extend_support': True,
        }
        name = self.configuration.safe_get('volume_backend_name')
        return {
            'volume_backend_name': name,
            'vendor_name': 'none',
            'driver_version': self.VERSION,
            'storage_protocol': 'none',
            'pools': [pool],
        }

    def nothing(self, *args, **kwargs):
        """There is nothing to do."""

    create_volume = delete_volume = extend_volume = nothing
    create_snapshot = delete_snapshot = create_volume_from_snapshot = create_cloned_volume = nothing
    ensure_export = create_export = remove_export = create_export_snapshot = remove_export_snapshot = nothing
    initialize_connection_snapshot = terminate_connection_snapshot = terminate_connection = nothing
    copy_image_to_volume = nothing

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """Avoids downloading and converting the image."""
        return {}, True

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        data = io.BytesIO(volume.id.encode().ljust(BYTES, b'\0'))
        image_service.update(context, image_meta['id'], {}, data)

    def initialize_connection(self, volume, connector):
        return {'driver_volume_type': 'none', 'data': {'volume_id': volume.id, 'target': volume.name}}

    def retype(self, context, volume, new_type, diff, host):
        return True, None

    def migrate_volume(self, context, volume, host):
        return True, None
