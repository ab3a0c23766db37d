"""A process with many threads allocates memory from a single arena."""

import platform
import subprocess
import sys

import pytest

ARENAS = """
import ctypes, sys, threading
from computeapi import malloc_arenas

malloc_arenas.limit()
barrier = threading.Barrier(8)

def take():
    held = [bytearray(50_000) for _ in range(20)]
    barrier.wait()

threads = [threading.Thread(target=take) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
told = ctypes.c_void_p(libc.fdopen(1, b'w'))
libc.malloc_info(0, told)
libc.fflush(told)
"""


@pytest.mark.parametrize(('share', 'most'), [('', 1), ('malloc_arenas.limit = int', 100)])
def test_threads_share_an_arena(share, most):
    if platform.libc_ver()[0] != 'glibc':
        return
    code = ARENAS.replace('malloc_arenas.limit()', f'{share}\nmalloc_arenas.limit()', 1)
    told = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    number = told.count('<heap nr=')
    assert number <= most and (number > 1) == bool(share), told
