"""Writes the root file system of the tiny Linux: initramfs.py UNPACKED ROOT TARGET.

UNPACKED: the unpacked Debian packages.  ROOT: files of our own, which are added on top.
"""

import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MODULES = [
    'virtio_pci',
    'virtio_blk',
    'virtio_net',
    'virtio_scsi',
    'virtio_balloon',
    'virtio_rng',
    'virtio_console',
    'sd_mod',
    'sr_mod',
    'ata_piix',
    'isofs',
    'vfat',
    'nls_cp437',
    'nls_ascii',
    'nls_utf8',
    'button',
    'evdev',
]
"""Drivers that this kernel has as modules, for the hardware of virtual machines and its contents."""

PROGRAMS = {
    'bin/busybox': 'bin/busybox',
    'usr/sbin/dropbear': 'bin/dropbear',
    'usr/bin/jq': 'bin/jq',
    'usr/sbin/qemu-ga': 'bin/qemu-ga',
}
LIBRARIES = ['c', 'm', 'crypt', 'gmp', 'tomcrypt', 'tommath', 'z', 'jq', 'onig']
LIBRARIES += ['glib-2.0', 'gmodule-2.0', 'pcre2-8', 'numa', 'udev', 'uring']
LOADER = 'lib64/ld-linux-x86-64.so.2'
FOLDERS = [
    'bin',
    'dev',
    'etc',
    'etc/dropbear',
    'lib',
    'lib64',
    'lib/modules',
    'proc',
    'root',
    'sys',
    'usr',
    'var',
    'var/log',
    'var/run',
]
LINKS = {'init': 'bin/busybox', 'sbin': 'bin', 'usr/bin': '../bin', 'usr/sbin': '../bin'}


class Archive:
    """An archive in the format that the kernel unpacks at boot (cpio, `newc`)."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.names: set[str] = set()

    def add(self, name: str, mode: int, content: bytes = b'', device: tuple[int, int] = (0, 0)) -> None:
        if name in self.names:
            return
        self.names.add(name)
        path = name.encode() + b'\0'
        fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
        self.put(b'070701' + b''.join(b'%08x' % field for field in fields) + path)
        self.put(content)

    def put(self, content: bytes) -> None:
        self.data += content
        self.data += bytes(-len(self.data) % 4)

    def add_folder(self, name: str) -> None:
        self.add(name, stat.S_IFDIR | 0o755)

    def add_link(self, name: str, target: str) -> None:
        self.add(name, stat.S_IFLNK | 0o777, target.encode())

    def add_file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        for folder in list(Path(name).parents)[-2::-1]:
            self.add_folder(str(folder))
        self.add(name, stat.S_IFREG | mode, content)

    def finish(self) -> bytes:
        self.add('TRAILER!!!', 0)
        return bytes(self.data)


def in_order(modules: dict[str, Path], wanted: list[str]) -> list[str]:
    """These modules in loading order: each after the ones that it depends on."""
    order: list[str] = []

    def come(name: str) -> None:
        for needed in needs(modules[name].read_bytes()):
            come(needed)
        if name not in order:
            order.append(name)

    for name in wanted:
        come(name)
    return order


def needs(module: bytes) -> Iterator[str]:
    """The dependencies declared by a module."""
    found = re.search(rb'\0depends=([^\0]*)\0', module)
    for name in found[1].decode().split(',') if found else ():
        if name:
            yield name.replace('-', '_')


def main(unpacked: Path, own: Path, target: Path) -> None:
    archive = Archive()
    for folder in FOLDERS:
        archive.add_folder(folder)
    archive.add('dev/console', stat.S_IFCHR | 0o600, device=(5, 1))
    for link, to in LINKS.items():
        archive.add_link(link, to)
    for path in sorted(own.rglob('*')):
        if path.is_file():
            archive.add_file(str(path.relative_to(own)), path.read_bytes(), path.stat().st_mode & 0o777)
    add_modules(archive, unpacked)
    add_programs(archive, unpacked)
    target.write_bytes(archive.finish())


def add_modules(archive: Archive, unpacked: Path) -> None:
    modules = {path.stem.replace('-', '_'): path for path in unpacked.glob('lib/modules/**/*.ko')}
    order = in_order(modules, MODULES)
    for name in order:
        archive.add_file(f'lib/modules/{name}.ko', modules[name].read_bytes())
    archive.add_file('etc/modules', ''.join(f'{name}\n' for name in order).encode())


def add_programs(archive: Archive, unpacked: Path) -> None:
    for source, name in PROGRAMS.items():
        archive.add_file(name, (unpacked / source).read_bytes(), 0o755)
    archive.add_file(LOADER, (unpacked / LOADER).read_bytes(), 0o755)
    for library in LIBRARIES:
        path = next(unpacked.glob(f'**/x86_64-linux-gnu/lib{library}.so.*'))
        name = re.match(r'.*\.so\.\d+', path.name)
        archive.add_file(f'lib/x86_64-linux-gnu/{name[0]}', path.read_bytes(), 0o755)
    # Programs added above under their own names take precedence over busybox's applets.
    for applet in applets(unpacked / 'bin/busybox'):
        archive.add_link(f'bin/{applet}', 'busybox')


def applets(busybox: Path) -> list[str]:
    return subprocess.check_output([busybox, '--list'], text=True).split()


if __name__ == '__main__':
    main(*(Path(argument) for argument in sys.argv[1:]))
