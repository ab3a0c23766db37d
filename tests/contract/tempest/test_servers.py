"""Servers, what is attached to them, and actions on them."""


def test_servers(nova):
    server = nova.boot(metadata={'key': 'value'})
    for _ in nova.versions():
        assert nova.servers.show_server(server)['server']['status'] == 'ACTIVE'
        nova.servers.list_servers()
        nova.servers.list_servers(detail=True)
        nova.servers.list_servers(detail=True, limit=1)
        nova.servers.update_server(server, name='renamed')
        nova.servers.list_addresses(server)
        nova.servers.list_addresses_by_network(server, 'private')


def test_new_servers(nova):
    for _ in nova.steps(nova.servers):
        server = nova.boot()
        nova.act('rebuild_server', server, nova.image.id, metadata={'key': 'value'})
        assert nova.servers.show_server(server)['server']['status'] == 'ACTIVE'
        nova.act('delete_server', server)


def test_broken_servers(nova):
    nova.service.conf.set_override('fail', ['spawn'], 'simulated')
    server = nova.boot()
    for _ in nova.versions():
        assert nova.servers.show_server(server)['server']['status'] == 'ERROR'
        nova.servers.list_servers(detail=True)


def test_metadata(nova):
    server = nova.boot()
    for _ in nova.versions():
        nova.servers.set_server_metadata(server, {'a': '1'})
        nova.servers.update_server_metadata(server, {'b': '2'})
        nova.servers.list_server_metadata(server)
        nova.servers.set_server_metadata_item(server, 'c', {'c': '3'})
        nova.servers.show_server_metadata_item(server, 'c')
        nova.servers.delete_server_metadata_item(server, 'c')


def test_tags(nova):
    server = nova.boot()
    # Tempest has no schemas of tags from 2.99 on.
    for _ in nova.versions('2.26', '2.98'):
        nova.servers.update_all_tags(server, ['a', 'b'])
        nova.servers.list_tags(server)
        nova.servers.update_tag(server, 'c')
        nova.servers.check_tag_existence(server, 'c')
        nova.servers.delete_tag(server, 'c')
        nova.servers.delete_all_tags(server)


def test_what_is_known_of_a_server(nova):
    server = nova.boot()
    for _ in nova.versions():
        first = nova.servers.list_instance_actions(server)['instanceActions'][-1]
        action = nova.servers.show_instance_action(server, first['request_id'])['instanceAction']
        assert action['events']
        nova.servers.show_server_diagnostics(server)
        nova.servers.show_password(server)
        nova.servers.delete_password(server)
        nova.servers.get_console_output(server, length=10)
        nova.servers.list_security_groups_by_server(server)


def test_consoles(nova):
    server = nova.boot()
    for _ in nova.versions(last='2.5'):
        nova.servers.get_vnc_console(server, type='novnc')
    for _ in nova.versions('2.6'):
        console = nova.servers.get_remote_console(server, 'novnc', 'vnc')['remote_console']
    # The only version at which Tempest has a schema of a console's location.
    for _ in nova.versions('2.99', '2.99'):
        nova.servers.get_console_auth_token_details(console['url'].rpartition('token%3D')[2])


def test_power(nova):
    server = nova.boot()
    for _ in nova.steps(nova.servers):
        nova.act('stop_server', server)
        nova.act('start_server', server)
        nova.act('reboot_server', server, type='HARD')
        nova.act('pause_server', server)
        nova.act('unpause_server', server)
        nova.act('suspend_server', server)
        nova.act('resume_server', server)
        nova.act('rescue_server', server)
        nova.act('unrescue_server', server)
        nova.act('lock_server', server)
        nova.act('unlock_server', server)
        nova.act('change_password', server, adminPass='secret')
        nova.act('reset_state', server, state='active')
        nova.act('remove_security_group', server, name='default')
        nova.act('add_security_group', server, name='default')


def test_shelving(nova):
    nova.service.conf.set_override('shelved_offload_time', -1)
    server = nova.boot()
    for _ in nova.steps(nova.servers):
        nova.act('shelve_server', server)
        nova.act('shelve_offload_server', server)
        assert nova.servers.show_server(server)['server']['status'] == 'SHELVED_OFFLOADED'
        nova.act('unshelve_server', server)


def test_moves(nova):
    server = nova.boot()
    for _ in nova.steps(nova.servers):
        nova.act('resize_server', server, nova.large)
        nova.act('revert_resize_server', server)
        nova.act('migrate_server', server)
        nova.act('confirm_resize_server', server)
        assert nova.servers.show_server(server)['server']['status'] == 'ACTIVE'
        disks = {} if nova.since('2.25') else {'disk_over_commit': False}
        nova.servers.live_migrate_server(server, host=None, block_migration=False, **disks)
        # From 2.59 to 2.61 Tempest's client uses the schema of 2.58 for these, not the one that it has for 2.59.
        if nova.since('2.23') and not nova.version.matches((2, 59), (2, 61)):
            nova.servers.list_in_progress_live_migration(server)
        nova.settle()


def test_migrations(nova):
    server = nova.boot()
    nova.act('migrate_server', server)
    for _ in nova.versions():
        nova.migrations.list_migrations()


def test_images(nova):
    server = nova.boot()
    for _ in nova.steps(nova.images):
        nova.images.create_image(server, name='image')
        nova.settle()
    for _ in nova.steps(nova.servers):
        nova.act('create_backup', server, name='backup', backup_type='daily', rotation=1)


def test_evacuations(nova):
    server = nova.boot()
    for version in nova.steps(nova.servers):
        # Tempest compares these versions as strings; if that gives the wrong result, it picks the wrong schema.
        if (version < (2, 14)) == (str(version) < '2.14'):
            nova.fail_host_of(server)
            nova.act('evacuate_server', server, **({} if nova.since('2.14') else {'onSharedStorage': False}))


def test_interfaces(nova):
    server = nova.boot()
    for _ in nova.steps(nova.interfaces):
        made = nova.interfaces.create_interface(server, net_id=nova.network.id)['interfaceAttachment']
        nova.interfaces.list_interfaces(server)
        nova.interfaces.show_interface(server, made['port_id'])
        nova.interfaces.delete_interface(server, made['port_id'])
        nova.settle()


def test_volumes(nova):
    server = nova.boot()
    for _ in nova.steps(nova.servers):
        volume, other = volumes = [nova.service.volumes.create(nova.admin, 1).id for _ in range(2)]
        nova.act('attach_volume', server, volumeId=volume)
        nova.servers.show_volume_attachment(server, volume)
        nova.servers.list_volume_attachments(server)
        nova.service.volumes.reset_status(nova.admin, volume, migration_status='migrating')
        nova.act('update_attached_volume', server, volume, volumeId=other)
        nova.act('detach_volume', server, other)
        for each in volumes:
            nova.service.volumes.delete(nova.admin, each)


def test_shares(nova):
    server = nova.boot()
    # Tempest has no schema of shares before its schemas of 2.97.
    for _ in nova.versions('2.97'):
        nova.servers.list_share_attachments(server)


def test_events_from_outside(nova):
    server = nova.boot()
    for _ in nova.steps(nova.servers):
        event = {'name': 'network-changed', 'server_uuid': server}
        nova.external_events.create_server_external_events([event])
        nova.settle()
