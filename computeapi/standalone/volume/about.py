"""What clients ask about the service itself."""

from typing import Any

from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.volume.documents import time
from computeapi.standalone.volume.service import MINOR, VolumeService, minor

UPDATED = '2023-08-31T00:00:00Z'

EXTENSIONS = (
    ('os-admin-actions', 'Enable admin-actions.'),
    ('os-availability-zone', 'Describe Availability Zones.'),
    ('os-quota-sets', 'Quota management support.'),
    ('os-services', 'Services support.'),
    ('os-types-extra-specs', 'Type extra specs support.'),
    ('os-types-manage', 'Types manage support.'),
    ('os-vol-image-meta', 'Show image metadata associated with the volume.'),
    ('os-vol-tenant-attr', 'Expose the internal project_id as an attribute of a volume.'),
    ('os-volume-actions', 'Enable volume actions.'),
    ('os-volume-type-access', 'Volume type access support.'),
    ('os-extended-snapshot-attributes', 'Extended snapshot attributes support.'),
)


class AboutRoutes(VolumeService):
    @route('GET', '/', anonymous=True)
    def choices(self, req: FaceRequest) -> tuple[int, dict[str, Any]]:
        return 300, self.versions(req)

    @route('GET', '/v3', anonymous=True)
    @route('GET', '/v3/', anonymous=True)
    def versions(self, req: FaceRequest) -> dict[str, Any]:
        version = {
            'id': 'v3.0',
            'status': 'CURRENT',
            'version': f'3.{MINOR}',
            'min_version': '3.0',
            'updated': UPDATED,
            'links': [{'rel': 'self', 'href': f'{req.application_url}/v3/'}],
            'media-types': [{'base': 'application/json', 'type': 'application/vnd.openstack.volume+json;version=3'}],
        }
        return {'versions': [version]}

    @route('GET', '/v3/extensions')
    def extensions(self, req: FaceRequest) -> dict[str, Any]:
        return {
            'extensions': [
                {'alias': alias, 'name': alias, 'description': text, 'links': [], 'updated': UPDATED}
                for alias, text in EXTENSIONS
            ]
        }

    @route('GET', '/v3/os-availability-zone')
    def zones(self, req: FaceRequest) -> dict[str, Any]:
        zones = self.volumes.availability_zones(req.context)
        return {'availabilityZoneInfo': [{'zoneName': zone, 'zoneState': {'available': True}} for zone in zones]}

    @route('GET', '/v3/os-services', admin=True)
    def services(self, req: FaceRequest) -> dict[str, Any]:
        """One service in each zone, which is up as long as it answers."""
        services = [
            {
                'binary': 'cinder-volume',
                'host': f'local@{zone}',
                'zone': zone,
                'status': 'enabled',
                'state': 'up',
                'disabled_reason': None,
                'updated_at': time(self.volumes.clock()),
                **({'cluster': None} if minor(req) >= 7 else {}),
                **({'backend_state': 'up'} if minor(req) >= 49 else {}),
            }
            for zone in self.volumes.availability_zones(req.context)
        ]
        wanted = {name: req.GET[name] for name in ('binary', 'host') if name in req.GET}
        return {'services': [service for service in services if wanted.items() <= service.items()]}

    @route('GET', '/v3/limits')
    def limits(self, req: FaceRequest) -> dict[str, Any]:
        project_id = req.context.project_id or ''
        if req.context.is_admin:
            project_id = req.GET.get('project_id', project_id)
        limit, used = self.volumes.quotas.limits(project_id), self.volumes.quotas.usage(project_id)
        absolute = {
            'maxTotalVolumes': limit['volumes'],
            'maxTotalSnapshots': limit['snapshots'],
            'maxTotalVolumeGigabytes': limit['gigabytes'],
            'maxTotalBackups': limit['backups'],
            'maxTotalBackupGigabytes': limit['backup_gigabytes'],
            'totalVolumesUsed': used['volumes'],
            'totalSnapshotsUsed': used['snapshots'],
            'totalGigabytesUsed': used['gigabytes'],
            'totalBackupsUsed': used['backups'],
            'totalBackupGigabytesUsed': used['backup_gigabytes'],
        }
        return {'limits': {'rate': [], 'absolute': absolute}}
