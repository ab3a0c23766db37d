"""The networks, ports and security groups of new servers."""

import pytest
import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db.tables.servers import tasks
from tests.api.servers.conftest import BOB, NETWORK, message

ADMIN, NIL = 'admin:project', '00000000-0000-0000-0000-000000000000'
SEVERAL = 'Multiple possible networks found, use a Network ID to be more specific.'


@pytest.fixture
def asked(create, world):
    """asked(version, ...): the networks in the task of a new server."""

    def arguments(*version, **kwargs):
        answer = create(*version, **kwargs)
        assert answer.status == 202, answer
        with world.store.read() as connection:
            return connection.execute(sa.select(tasks.c.arguments).order_by(tasks.c.id.desc())).scalars().first()

    return arguments


def interface(network_id=None, port_id=None, fixed_ip=None, tag=None, is_outside=False):
    facts = {'network_id': network_id, 'port_id': port_id, 'fixed_ip': fixed_ip, 'tag': tag}
    return facts | {'is_outside': is_outside}


def test_the_only_network_need_not_be_named(asked, world):
    assert asked(networks=None)['networks'] == [interface(NETWORK)]
    assert asked(networks=[])['networks'] == [interface(NETWORK)]
    assert asked('2.37', networks='auto')['networks'] == 'auto'
    assert asked('2.37', networks='none')['networks'] == 'none'


def test_of_several_networks_one_must_be_named(create, world):
    world.network(subnet='10.1.0.0/24')
    for version, networks in (('2.1', None), ('2.36', []), ('2.37', 'auto'), ('2.37', [])):
        assert message(create(version, networks=networks)) == (409, SEVERAL)
    assert create('2.37', networks='none').status == 202


def test_a_project_without_networks(api, asked, create, world):
    image = world.image(context=Context(project_id='other', roles=frozenset({'member'})))
    assert asked(as_='alice:other', networks=None, imageRef=image)['networks'] == []
    status, why = message(create('2.37', as_='alice:other', networks='auto', imageRef=image))
    assert (status, 'external network' in why) == (400, True)
    world.network(context=world.admin, subnet='198.51.100.0/24', **{'router:external': True})
    assert asked('2.37', as_='alice:other', networks='auto', imageRef=image)['networks'] == 'auto'


def test_from_2_37_they_are_required(create):
    assert message(create('2.37', networks=None))[1].endswith("'networks' is a required property")


def test_what_is_said_is_passed_on(asked, world):
    port = world.port()
    networks = [{'uuid': NETWORK, 'fixed_ip': '10.0.0.9', 'tag': 'nic'}, {'port': port, 'uuid': NETWORK}]
    assert asked('2.42', networks=networks)['networks'] == [
        interface(NETWORK, fixed_ip='10.0.0.9', tag='nic'),
        interface(port_id=port),
    ]
    twice = [{'uuid': NETWORK}, {'uuid': NETWORK}]
    assert asked(networks=twice)['networks'] == [interface(NETWORK), interface(NETWORK)]


def test_only_some_may_use_external_networks(asked, world):
    assert asked()['external_networks'] is False
    assert asked(as_=ADMIN)['external_networks'] is True


@pytest.fixture
def outside(world):
    """An external network that is not shared."""
    return world.network(context=world.admin, subnet='198.51.100.0/24', **{'router:external': True})


def test_whether_a_network_leads_to_the_outside_is_passed_on(asked, outside):
    assert asked(networks=[{'uuid': outside}, {'uuid': NETWORK}])['networks'] == [
        interface(outside, is_outside=True),
        interface(NETWORK),
    ]


def test_external_networks_are_refused_to_tasks_that_do_not_tell(asked, outside, world, api, settle):
    """Tasks of an older release do not."""
    told = asked(networks=[{'uuid': outside}])
    for item in told['networks']:
        del item['is_outside']
    with world.store.write() as connection:
        connection.execute(tasks.update().values(arguments=told))
    settle()
    (server,) = api.get('/servers/detail', as_=BOB).json['servers']
    assert (server['status'], 'external network' in server['fault']['message']) == ('ERROR', True)


def test_a_server_on_an_external_network(create, api, outside, settle):
    # The refusal happens when the server gets its interfaces.
    for caller, status in ((BOB, 'ERROR'), (ADMIN, 'ACTIVE')):
        answer = create(as_=caller, networks=[{'uuid': outside}])
        assert answer.status == 202
        settle()
        shown = api.get(f'/servers/{answer.json["server"]["id"]}').json['server']
        assert shown['status'] == status, shown
    assert 'fault' not in shown


def test_a_server_on_a_port_of_an_external_network(create, api, world, outside, settle):
    for caller, status in ((BOB, 'ERROR'), (ADMIN, 'ACTIVE')):
        answer = create(as_=caller, networks=[{'port': world.port(network_id=outside)}])
        assert answer.status == 202
        settle()
        assert api.get(f'/servers/{answer.json["server"]["id"]}').json['server']['status'] == status


def test_security_groups_become_ids(asked, world):
    groups = world.networks.security_groups(world.bob)
    made = world.networks.create_security_group(world.bob, 'web', '')
    names = [{'name': 'default'}, {'name': made.id}, {}]
    assert asked(security_groups=names)['security_groups'] == [groups[0].id, made.id]


@pytest.mark.parametrize('groups', [[], [{}], [{'name': 'default'}, {'name': 'default'}]])
def test_the_answer_has_the_groups_as_they_were_asked_for(create, groups):
    assert create(security_groups=groups).json['server']['security_groups'] == groups


def test_of_groups_with_one_name_the_id_must_be_given(create, world):
    for _ in range(2):
        made = world.networks.create_security_group(world.bob, 'web', '')
    status, text = message(create(security_groups=[{'name': 'web'}]))
    assert (status, text.startswith('Multiple security_group matches')) == (409, True)
    assert create(security_groups=[{'name': made.id}]).status == 202


@pytest.mark.parametrize(
    ('networks', 'text'),
    [
        ([{'uuid': NIL}], f'Network {NIL} could not be found.'),
        ([{'port': NIL}], f'Port id {NIL} could not be found.'),
        ([{'uuid': 'x'}], 'Bad networks format: network uuid is not in proper format (x)'),
        ([{'uuid': 'x', 'port': NIL}], f'Port id {NIL} could not be found.'),
        ([{'port': None}], "Bad network format: missing 'uuid'"),
        ([{'fixed_ip': '10.0.0.9'}], "Bad network format: missing 'uuid'"),
        (
            [{'port': NIL}, {'port': NIL}],
            f"Port ID '{NIL}' was specified twice: you cannot attach a port multiple times.",
        ),
        (
            [{'port': NIL, 'fixed_ip': '10.0.0.9'}],
            f"Specified Fixed IP '10.0.0.9' cannot be used with port '{NIL}': the two cannot be specified together.",
        ),
    ],
)
def test_networks_that_cannot_be(create, networks, text):
    assert message(create(networks=networks)) == (400, text)


def test_networks_and_ports_that_cannot_be_used(create, world):
    bare = world.network(subnet=None)
    assert message(create(networks=[{'uuid': bare}])) == (
        400,
        f'Network {bare} requires a subnet in order to boot instances on.',
    )
    used, empty = world.port(device_id='x'), world.port(fixed_ips=[])
    assert message(create(networks=[{'port': used}])) == (409, f'Port {used} is still in use.')
    assert message(create(networks=[{'port': empty}])) == (400, f'Port {empty} requires a FixedIP in order to be used.')
    theirs = world.network(context=Context(project_id='other', roles=frozenset({'member'})))
    assert message(create(networks=[{'uuid': theirs}])) == (400, f'Network {theirs} could not be found.')


def test_an_address_or_a_port_is_for_one_server(create, world):
    for network in ({'uuid': NETWORK, 'fixed_ip': '10.0.0.9'}, {'port': world.port()}):
        status, text = message(create(networks=[network], max_count=2))
        assert status == 400 and text.startswith('Failed to launch instances: ')


def test_ports_are_counted(create, made, world):
    world.networks.resources.set_quotas(world.admin, 'project', {'port': 3})
    assert message(create(networks=[{'uuid': NETWORK}] * 2, min_count=2)) == (403, 'Maximum number of ports exceeded')
    assert len(made(max_count=5)) == 3


def test_an_address_that_is_taken_is_refused(create, world):
    taken = world.port(fixed_ips=[{'ip_address': '10.0.0.77'}])
    world.networks.bind_port(world.bob, taken, server_id=NIL, host=None)
    answer = create(networks=[{'uuid': NETWORK, 'fixed_ip': '10.0.0.77'}])
    assert message(answer) == (400, f'Fixed IP address 10.0.0.77 is already in use on instance {NIL}.')
    assert create(networks=[{'uuid': NETWORK, 'fixed_ip': '10.0.0.78'}]).status == 202
    other = world.network(subnet='10.0.0.0/24')
    assert create(networks=[{'uuid': other, 'fixed_ip': '10.0.0.77'}]).status == 202
