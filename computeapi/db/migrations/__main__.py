"""Writes a revision; see the package's docstring."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import Script

from computeapi.db import schema


def main() -> None:
    parser = argparse.ArgumentParser(prog='python -m computeapi.db.migrations', description=__doc__)
    parser.add_argument('message', nargs='?', help='what changes, in a few words')
    parser.add_argument('--again', action='store_true', help='replace the newest revision')
    options = parser.parse_args()
    if options.again == bool(options.message):
        parser.error('either a message or --again')
    print(write(options.message or remove_newest()))


def remove_newest() -> str:
    """Delete the file of the newest revision; returns its message."""
    [path] = (schema.MIGRATIONS / 'versions').glob(f'{schema.head()}_*.py')
    path.unlink()
    return path.stem.partition('_')[2].replace('_', ' ')


def write(message: str) -> Path:
    """Write a new revision, by running the others on an empty database and comparing; returns its file."""
    with sa.create_engine('sqlite://').begin() as connection:
        config = Config(attributes={'connection': connection, 'batch': bool(schema.head())})
        config.set_main_option('script_location', str(schema.MIGRATIONS))
        config.set_main_option('file_template', '%%(rev)s_%%(slug)s')
        command.upgrade(config, 'head')
        script = command.revision(config, message.capitalize(), autogenerate=True, rev_id=next_number())
    assert isinstance(script, Script)
    path = Path(script.path)
    tidy(path)
    return path


def tidy(path: Path) -> None:
    """Remove redundant code."""
    text = re.sub(r"\bop\.f\(('[^']*')\)", r'\1', path.read_text())
    text = re.sub(r', nullable=True|, unique=False|^ +# ###.*\n', '', text, flags=re.MULTILINE)
    path.write_text(text)
    for arguments in ('check --select F401,I --fix', 'format'):
        subprocess.run([sys.executable, '-m', 'ruff', *arguments.split(), '--quiet', path], check=True)


def next_number() -> str:
    return f'{int(schema.head() or 0) + 1:04}'


if __name__ == '__main__':
    main()
