"""The smallest guest boots, counts its boots, and echoes input."""

import json
import subprocess

import pytest

from tests.guests import boot_sector
from tests.guests.machine import disk, machine


@pytest.mark.parametrize('disk_format', ['raw', 'qcow2'])
def test_it_counts_its_boots_on_its_disk(tmp_path, disk_format):
    image = boot_sector.write_disk(tmp_path / 'disk', disk_format=disk_format)
    for number in ('01', '02'):
        with machine(tmp_path, *disk(image, disk_format), memory=16) as guest:
            guest.expect(f'{boot_sector.BANNER}{number}\r\n')


def test_it_repeats_what_is_typed_at_the_serial_port(tmp_path):
    with machine(tmp_path, *disk(boot_sector.write_disk(tmp_path / 'disk')), memory=16) as guest:
        guest.expect(f'{boot_sector.BANNER}01\r\n')
        guest.type('more at once than the sixteen characters that its port keeps\r')
        assert guest.expect('\r\n') == 'more at once than the sixteen characters that its port keeps\r\n'


def test_it_repeats_what_is_typed_at_the_keyboard(tmp_path):
    with machine(tmp_path, *disk(boot_sector.write_disk(tmp_path / 'disk')), memory=16) as guest:
        guest.expect(f'{boot_sector.BANNER}01\r\n')
        guest.execute('send-key', keys=[{'type': 'qcode', 'data': 'q'}])
        guest.expect('q')


def test_a_disk_has_the_size_that_was_asked_for(tmp_path):
    image = boot_sector.write_disk(tmp_path / 'disk', size=3 << 20, disk_format='qcow2')
    facts = json.loads(subprocess.check_output(['qemu-img', 'info', '--output', 'json', image]))
    assert (facts['format'], facts['virtual-size']) == ('qcow2', 3 << 20)
