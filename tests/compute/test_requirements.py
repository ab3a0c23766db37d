"""What extra specs, image properties and the configuration say of resources and traits."""

import pytest
from oslo_config import cfg

from computeapi import config
from computeapi.api.extra_specs import validate
from computeapi.compute.scheduler import Spec
from computeapi.compute.scheduler.requirements import RequestGroup, groups_of, sizes_in
from computeapi.compute.scheduler.spec import needs_of
from computeapi.compute.servers.provider_resources import flavor_requests


def spec(extra_specs, **kwargs):
    sizes = {'vcpus': 2, 'memory_mb': 64, 'disk_gb': 0}
    return Spec(server_id='s', project_id='p', **sizes, extra_specs=extra_specs, **kwargs)


def test_groups():
    extra_specs = {
        'resources:VGPU': '1',
        'resources:CUSTOM_A': 2,
        'trait:HW_CPU_X86_AVX2': 'required',
        'trait:CUSTOM_SLOW': 'forbidden',
        'resources_NIC-1:CUSTOM_A': '0',
        'trait_NIC-1:CUSTOM_FAST': 'required',
    }
    properties = {'trait:CUSTOM_OF_IMAGE': 'required', 'trait:CUSTOM_X': 'forbidden', 'trait1:CUSTOM_X': 'required'}
    assert groups_of(extra_specs, properties) == {
        '': RequestGroup(
            {'VGPU': 1, 'CUSTOM_A': 2},
            frozenset({'HW_CPU_X86_AVX2', 'CUSTOM_OF_IMAGE'}),
            frozenset({'CUSTOM_SLOW'}),
        ),
        '_NIC-1': RequestGroup({'CUSTOM_A': 0}, frozenset({'CUSTOM_FAST'})),
    }


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('resources:VGPU', 'many'),
        ('resources:VGPU', '-1'),
        ('resources:VGPU', '1.5'),
        ('resources:VGPU', '0'),
        ('resources:UNKNOWN', '1'),
        ('resources1:CUSTOM_A', '0'),
        ('resources', '1'),
        ('trait:CUSTOM_A', 'preferred'),
        ('trait:', 'required'),
        ('resources:VCPU', '7'),
    ],
)
def test_what_requires_nothing_special(key, value):
    assert spec({key: value}).groups == {}


@pytest.mark.parametrize('text', ['2', '+2', ' 2', '02', '٢'])
def test_amounts_are_whatever_is_valid_as_an_extra_spec(text):
    validate({'resources:VGPU': text})
    assert groups_of({'resources:VGPU': text}, {}) == {'': RequestGroup({'VGPU': 2})}


def test_sizes_are_overridden_even_in_groups():
    flavor = {'vcpus': 2, 'memory_mb': 64, 'root_gb': 1, 'ephemeral_gb': 1, 'swap': 0}
    specs = {'resources:VCPU': '0', 'resources1:DISK_GB': '3', 'resources2:DISK_GB': '4'}
    needs = needs_of({**flavor, 'extra_specs': specs}, on_volume=False)
    assert needs == {'vcpus': 0, 'memory_mb': 64, 'disk_gb': 7}
    assert sizes_in({'resources:VCPU': str(2**40)}) == {'vcpus': 2**31 - 1}


def test_a_forced_move_keeps_resources_alone():
    specs = {'resources:VGPU': '1', 'trait:CUSTOM_A': 'required', 'trait1:CUSTOM_B': 'forbidden'}
    assert set(spec(specs, forced=True).groups) == {'', '1'}
    assert spec(specs, forced=True, current_host='a').groups == {'': RequestGroup({'VGPU': 1})}
    assert spec({'trait:CUSTOM_A': 'required'}, forced=True, current_host='a').groups == {}


def test_placement_is_asked_for_sizes_as_well():
    specs = {'resources1:VCPU': '2', 'trait1:CUSTOM_A': 'forbidden', 'resources:VGPU': '1'}
    common, numbered = flavor_requests(spec(specs))
    assert (common.id, common.resources) == ('', {'MEMORY_MB': 64, 'VGPU': 1})
    assert numbered == ('1', {'VCPU': 2}, [], ['CUSTOM_A'])
    assert flavor_requests(spec({'resources:VCPU': '2'})) == []
    sizes = {'resources1:VCPU': '1', 'resources2:MEMORY_MB': '64', 'group_policy': 'none'}
    assert [each.resources for each in flavor_requests(spec(sizes))] == [{'VCPU': 1}, {'MEMORY_MB': 64}]


def test_the_configuration_of_hosts(tmp_path):
    def loaded(group, text):
        path = tmp_path / 'computeapi.conf'
        path.write_text(f'[{group}]\n{text}\n')
        conf = config.load([str(path)])
        return conf[group].traits, conf[group].resources

    for group in ('simulated', 'qemu'):
        found = loaded(group, 'traits = CUSTOM_A, HW_CPU_X86_AVX2\nresources = VGPU:4,CUSTOM_B:1')
        assert found == (['CUSTOM_A', 'HW_CPU_X86_AVX2'], {'VGPU': 4, 'CUSTOM_B': 1})
        assert loaded(group, '') == ([], {})
    for wrong in (
        'traits = custom_a',
        'resources = VCPU:4',
        'resources = VGPU:0',
        'resources = VGPU',
        'resources = a:1',
    ):
        with pytest.raises(cfg.ConfigFileValueError):
            loaded('simulated', wrong)
