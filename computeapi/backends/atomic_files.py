"""Writes files atomically."""

import os
from pathlib import Path

from computeapi import randomness


def write(path: Path, data: bytes) -> None:
    """Write all of it or nothing, even if the machine crashes."""
    part = path.with_name(f'{path.name}.{randomness.new_hex_id()}.part')
    try:
        with part.open('xb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
