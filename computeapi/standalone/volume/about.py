"""Information about the volume service itself."""

from typing import Any

from computeapi.backends.volume.local.base import BACKEND, host_of
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.fields import time
from computeapi.standalone.volume.lists import (
    ATTACHMENT_FILTERS,
    BACKUP_FILTERS,
    GROUP_FILTERS,
    MESSAGE_FILTERS,
    SNAPSHOT_FILTERS,
    VOLUME_FILTERS,
)
from computeapi.standalone.volume.service import UPDATED, CinderController, added
from computeapi.versions import resolve
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request

# By alias: the name, which dashboards look for, and the description.
EXTENSIONS = {
    'backups': ('Backups', 'Backups support.'),
    'capabilities': ('Capabilities', 'Capabilities support.'),
    'encryption': ('VolumeTypeEncryption', 'Encryption support for volume types.'),
    'os-admin-actions': ('AdminActions', 'Enable admin-actions.'),
    'os-availability-zone': ('AvailabilityZones', 'Describe Availability Zones.'),
    'os-extended-snapshot-attributes': ('ExtendedSnapshotAttributes', 'Extended snapshot attributes support.'),
    'os-quota-class-sets': ('QuotaClasses', 'Quota classes management support.'),
    'os-quota-sets': ('Quotas', 'Quota management support.'),
    'os-services': ('Services', 'Services support.'),
    'os-types-extra-specs': ('TypesExtraSpecs', 'Types extra specs support.'),
    'os-types-manage': ('TypesManage', 'Types manage support.'),
    'os-used-limits': ('UsedLimits', 'Provide data on limited resources that are being used.'),
    'os-vol-host-attr': ('VolumeHostAttribute', 'Expose host as an attribute of a volume.'),
    'os-vol-image-meta': ('VolumeImageMetadata', 'Show image metadata associated with the volume.'),
    'os-vol-mig-status-attr': ('VolumeMigStatusAttribute', 'Expose migration_status as an attribute of a volume.'),
    'os-vol-tenant-attr': ('VolumeTenantAttribute', 'Expose the internal project_id as an attribute of a volume.'),
    'os-volume-actions': ('VolumeActions', 'Enable volume actions.'),
    'os-volume-encryption-metadata': ('VolumeEncryptionMetadata', 'Volume encryption metadata retrieval support.'),
    'os-volume-transfer': ('VolumeTransfer', 'Volume transfer management support.'),
    'os-volume-type-access': ('VolumeTypeAccess', 'Volume type access support.'),
    'qos-specs': ('Qos_specs_manage', 'QoS specs support.'),
    'scheduler-stats': ('Scheduler_stats', 'Scheduler stats support.'),
}

# Attributes of services that later versions add.
LATER = {'cluster': added('3.7', None), 'backend_state': added('3.49', 'up')}

# The filters of each kind of list.
FILTERED = {
    'volume': VOLUME_FILTERS,
    'snapshot': SNAPSHOT_FILTERS,
    'backup': BACKUP_FILTERS,
    'group': GROUP_FILTERS,
    'attachment': ATTACHMENT_FILTERS,
    'message': MESSAGE_FILTERS,
    'pool': ('name',),
}


class CinderInformation(CinderController):
    @operation('GET', '/extensions', policy=CALLER)
    def extensions(self, req: Request) -> dict[str, Any]:
        return {
            'extensions': [
                {'alias': alias, 'name': name, 'description': text, 'links': [], 'updated': UPDATED}
                for alias, (name, text) in EXTENSIONS.items()
            ]
        }

    @operation('GET', '/os-availability-zone', policy=CALLER)
    def zones(self, req: Request) -> dict[str, Any]:
        zones = self.volumes.availability_zones(req.context)
        return {'availabilityZoneInfo': [{'zoneName': zone, 'zoneState': {'available': True}} for zone in zones]}

    @operation('GET', '/resource_filters', policy=CALLER)
    @api_version('3.33')
    def filters(self, req: Request) -> dict[str, Any]:
        wanted = req.parameter('resource', '')
        found = {name: kinds for name, kinds in FILTERED.items() if wanted in ('', name)}
        return {'resource_filters': [{'resource': name, 'filters': [*filters]} for name, filters in found.items()]}

    @operation('GET', '/os-services', policy=ADMIN)
    def services(self, req: Request) -> dict[str, Any]:
        """List the scheduler, the backup service, and the volume service of each zone; all are always up."""
        zones = self.volumes.availability_zones(req.context)
        binaries = [(binary, BACKEND, zones[0]) for binary in ('cinder-scheduler', 'cinder-backup')]
        binaries += [('cinder-volume', host_of(zone), zone) for zone in zones]
        services = [
            {
                'binary': binary,
                'host': host,
                'zone': zone,
                'status': 'enabled',
                'state': 'up',
                'disabled_reason': None,
                'updated_at': time(self.volumes.clock()),
                **resolve(LATER, req.version),
            }
            for binary, host, zone in binaries
        ]
        binary, host = (req.parameter(name, '') for name in ('binary', 'host'))
        return {
            'services': [
                service
                for service in services
                if binary in ('', service['binary']) and host in ('', service['host'], service['host'].split('@')[0])
            ]
        }

    @operation('GET', '/limits', policy=CALLER)
    def limits(self, req: Request) -> dict[str, Any]:
        project_id = req.context.project_id or ''
        if req.context.is_admin:
            project_id = req.parameter('project_id', project_id)
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
