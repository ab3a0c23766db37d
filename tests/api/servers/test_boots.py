"""The number of a boot's database queries does not grow with the number of hosts, nor a request's with that of
servers."""

from tests.api.servers.conftest import NETWORK
from tests.invariants import problems


def test_a_boot_asks_the_same_among_any_number_of_hosts(service, create, settle, asked):
    counts = set()
    create('2.37', networks='none')
    settle()
    for hosts in (2, 30):
        service.conf.set_override('hosts', hosts, 'simulated')
        service.hosts.register()
        asked.clear()
        assert create('2.37', networks='none').status == 202
        settle()
        counts.add(len(asked))
    assert len(counts) == 1


def test_what_changes_while_ports_are_made_is_told_in_the_end(create, world, service, settle, api, monkeypatch):
    """Even after a port was read, and before it is written down."""
    names = service.networks.security_group_names

    def rename(context, ids):
        monkeypatch.undo()
        world.networks.resources.update(world.admin, 'networks', NETWORK, {'name': 'renamed'})
        return names(context, ids)

    monkeypatch.setattr(service.networks, 'security_group_names', rename)
    server_id = create().json['server']['id']
    assert service.worker.step()
    assert [*api.get(f'/servers/{server_id}').json['server']['addresses']] != ['renamed']
    settle()
    assert [*api.get(f'/servers/{server_id}').json['server']['addresses']] == ['renamed']


def test_the_network_service_is_asked_once_for_a_port(create, settle, service, monkeypatch):
    """Each request takes long if the service is far away."""
    asked = []

    class Networks:
        def __getattr__(self, name):
            asked.append(name)
            return getattr(service.networks, name)

    create()
    monkeypatch.setitem(service.platform.__dict__, 'networks', Networks())
    settle()
    assert asked == ['create_port', 'security_group_names']


def test_servers_of_one_request_are_written_together(create, settle, store, asked):
    create('2.37', networks='none')
    counts = []
    for count in (2, 7):
        asked.clear()
        assert create('2.52', networks='none', tags=['a', 'b'], min_count=count, max_count=count).status == 202
        counts.append(len([statement for statement in asked if 'INTO quota' not in statement]))
    assert counts[0] == counts[1]
    settle()
    assert problems(store) == []
