"""The smallest guest: a boot sector. It is up a moment after its virtual machine, in 16 MiB.

It counts its boots in the second sector of its disk, prints `computeapi-guest: boot 01` on the first serial port and on
the screen, and from then on echoes whatever is typed at either of them. It ignores the power button.
"""

import subprocess
from pathlib import Path

BANNER = 'computeapi-guest: boot '
"""Followed by two digits and the end of the line."""

LISTING = """
fc          cld
31c0        xor ax, ax
8ed8        mov ds, ax
8ed0        mov ss, ax
bc007c      mov sp, 0x7c00
be857c      mov si, packet          Read the second sector to 0x7e00, which stays in di; dl is the disk, as it came.
b442        mov ah, 0x42
cd13        int 0x13
bf007e      mov di, 0x7e00
807d0130    cmp [di + 1], '0'       No number is there yet: it becomes 00.
7304        jae count
c7053030    mov [di], '00'
fe4501      count: inc [di + 1]
807d0139    cmp [di + 1], '9'
7606        jbe store
c6450130    mov [di + 1], '0'
fe05        inc [di]
b80043      store: mov ax, 0x4300   Write it back.
cd13        int 0x13
8b05        mov ax, [di]
a3ae7c      mov [number], ax
b007        mov al, 7               The serial port's FIFO: on and empty.
bafa03      mov dx, 0x3fa
ee          out dx, al
be957c      mov si, banner
ac          print: lodsb
84c0        test al, al
7405        jz rest
e82600      call put
ebf6        jmp print
fb          rest: sti               Sleep until the next interrupt, at the latest the timer's.
f4          hlt
b401        look: mov ah, 1         Has a key been pressed?
cd16        int 0x16
7406        jz serial
31c0        xor ax, ax
cd16        int 0x16
eb0b        jmp echo
bafd03      serial: mov dx, 0x3fd   Has something come by the serial port?
ec          in al, dx
a801        test al, 1
74ea        jz rest
b2f8        mov dl, 0xf8
ec          in al, dx
e80800      echo: call put
3c0d        cmp al, 13
75e2        jne look
b00a        mov al, 10
ebf5        jmp echo
50          put: push ax            A character, to the serial port as soon as it can take one, and to the screen.
bafd03      mov dx, 0x3fd
ec          wait: in al, dx
a820        test al, 0x20
74fb        jz wait
58          pop ax
b2f8        mov dl, 0xf8
ee          out dx, al
50          push ax
b40e        mov ah, 14
bb0700      mov bx, 7
cd10        int 0x10
58          pop ax
c3          ret
10000100    packet: one sector, to 0x7e00, which is the disk's second
007e0000
0100000000000000
"""
"""The machine code, for address 0x7c00, with explanations."""


def sector() -> bytes:
    code = bytes.fromhex(''.join(line.split()[0] for line in LISTING.strip().splitlines()))
    text = f'\r\n{BANNER}00\r\n\0'.encode()
    return (code + text).ljust(510, b'\0') + b'\x55\xaa'


def write_disk(path: Path, *, size: int = 1 << 20, disk_format: str = 'raw') -> Path:
    """Create a bootable disk image of *size* bytes."""
    raw = path if disk_format == 'raw' else path.with_name(f'{path.name}.raw')
    with raw.open('wb') as file:
        file.write(sector())
        file.truncate(size)
    if raw != path:
        subprocess.run(['qemu-img', 'convert', '-f', 'raw', '-O', disk_format, raw, path], check=True)
        raw.unlink()
    return path
