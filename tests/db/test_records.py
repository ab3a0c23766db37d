"""The fields of records are filled by column name."""

from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from computeapi.db.records import Among, Rows

PEOPLE = sa.Table('people', sa.MetaData(), sa.Column('id', sa.Integer), sa.Column('name', sa.String(10)))


class Person(NamedTuple):
    name: str
    id: int
    friends: tuple = ()


@dataclass
class Shout:
    loud: str
    id: int
    heard: list = field(default_factory=list)


class Stranger(NamedTuple):
    id: int
    shoe_size: int


@pytest.fixture
def connection():
    engine = sa.create_engine('sqlite://')
    with engine.connect() as connection:
        PEOPLE.create(connection)
        connection.execute(PEOPLE.insert(), [{'id': 1, 'name': 'Ada'}, {'id': 2, 'name': 'Ben'}])
        yield connection
    engine.dispose()


def test_fields_are_filled_by_name(connection):
    people = Rows(Person, PEOPLE)
    assert people.all(connection, people.select.order_by(PEOPLE.c.id)) == [Person('Ada', 1), Person('Ben', 2)]


def test_a_field_can_be_an_expression(connection):
    shouts = Rows(Shout, PEOPLE, loud=sa.func.upper(PEOPLE.c.name))
    by_id = shouts.select.where(PEOPLE.c.id == sa.bindparam('key'))
    assert shouts.first(connection, by_id, {'key': 2}) == Shout('BEN', 2)
    assert shouts.first(connection, by_id, {'key': 3}) is None


def test_a_field_that_is_no_column_is_refused_at_once():
    with pytest.raises(KeyError, match='shoe_size'):
        Rows(Stranger, PEOPLE)


@pytest.mark.parametrize('column, values', [('id', (1, 2, 3)), ('name', ('Ada', "O'Ben", 'Ben'))])
def test_rows_are_found_that_hold_one_of_some_values(connection, column, values):
    among = Among(
        sa.select(PEOPLE.c.id).where(PEOPLE.c.id < sa.bindparam('most')).order_by(PEOPLE.c.id), PEOPLE.c[column]
    )

    def found(values, most=9):
        return [row[0] for row in among.rows(connection, values, {'most': most})]

    assert [found(()), found({values[0]}), found(values), found(values, 2)] == [[], [1], [1, 2], [1]]


def test_several_statements_find_their_rows_together(connection):
    by_id = (sa.select(PEOPLE.c.id, sa.null().label('name')), PEOPLE.c.id)
    longer = (sa.select(PEOPLE.c.id + 1, PEOPLE.c.name).where(PEOPLE.c.name != 'Ben'), PEOPLE.c.id)
    both = Among(*by_id, longer, order=('id', 'name'))
    assert list(map(tuple, both.rows(connection, [1, 2]))) == [(1, None), (2, None), (2, 'Ada')]
    assert list(map(tuple, both.rows(connection, [2]))) == [(2, None)]
