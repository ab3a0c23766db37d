"""The config drive: a CD with the documents of a guest, which cloud-init finds by its label."""

import io
from collections.abc import Mapping
from pathlib import Path

from pycdlib import PyCdlib

from computeapi.backends.atomic_files import write as write_file

NAME = 'config-2'


def write(path: Path, documents: Mapping[str, bytes]) -> None:
    """ISO 9660 limits names to eight capitals; Joliet and Rock Ridge, which all systems prefer, keep the full names."""
    disc, output = PyCdlib(), io.BytesIO()
    disc.new(interchange_level=4, vol_ident=NAME, joliet=3, rock_ridge='1.09')
    try:
        folders = {str(parent) for name in documents for parent in Path(name).parents} - {'.'}
        for folder in sorted(folders):
            disc.add_directory(f'/{folder}', rr_name=Path(folder).name, joliet_path=f'/{folder}')
        for name, data in documents.items():
            disc.add_fp(io.BytesIO(data), len(data), f'/{name}', rr_name=Path(name).name, joliet_path=f'/{name}')
        disc.write_fp(output)
    finally:
        disc.close()
    write_file(path, output.getvalue())
