"""SQL belongs in db/ only; the layers above call functions named after what they return."""

import ast
from pathlib import Path

import computeapi

ROOT = Path(computeapi.__file__).parent

NAMED = {'Connection', 'exc'}
"""The names of SQLAlchemy that may be used elsewhere: transactions are passed on, errors are handled."""


def sql(text):
    """The lines of a module that name tables, columns, or anything of SQLAlchemy that builds statements."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module='sqlalchemy', names=names):
                found = not {alias.name for alias in names} <= NAMED
            case ast.ImportFrom(module=str(module), names=names):
                whole = {f'{module}.{alias.name}' for alias in names}
                found = any(name.startswith('computeapi.db.tables') for name in whole)
            case ast.Attribute(value=ast.Name(id='sa'), attr=name):
                found = name not in NAMED
            case ast.Attribute(attr='c') | ast.Attribute(value=ast.Name(id='connection'), attr='execute'):
                found = True
            case _:
                found = False
        if found:
            yield node.lineno


def test_what_is_sql():
    assert list(sql('import sqlalchemy as sa\nsa.select(1)\nservers.c.id\ndef f(c: sa.Connection): ...')) == [2, 3]
    assert list(sql('from computeapi.db.tables.compute import servers\nfrom sqlalchemy import select')) == [1, 2]
    assert list(sql('from sqlalchemy.exc import IntegrityError\nimport sqlalchemy as sa\nsa.exc.SQLAlchemyError')) == []


def test_sql_stands_in_db():
    paths = {str(path.relative_to(ROOT)): path for path in ROOT.rglob('*.py')}
    found = {name for name, path in paths.items() if not name.startswith('db/') and any(sql(path.read_text()))}
    assert found == set()
