"""How operations are declared, and how an app interprets the declarations."""

from types import SimpleNamespace

import pytest

from computeapi.versions import LEGACY, MAX, MIN, APIVersionRequest, added, changed, removed, resolve
from computeapi.web.contract import ADMIN, Field, Operation, Policy, View, attr, views
from computeapi.web.controller import Bounds, Controller, action, api_version, operation
from computeapi.web.routing import RouteTable
from computeapi.web.schemas import query

ASK = Policy('things:show', ADMIN)
SEE = Policy('things:secret', ADMIN)


def version(text):
    return APIVersionRequest.parse(text)


class Things(Controller):
    """Things, to test with."""

    path = '/things'

    @operation('GET', policy=None)
    @Controller.api_version('2.1', '2.9')
    def index(self, req):
        """List the things."""
        return 'old'

    @api_version('2.10')
    @operation('GET', policy=None)
    def index(self, req):
        """List the things, but better."""
        return 'new'

    @operation('GET', '/{id}', policy=ASK)
    def show(self, req, id):
        """Show a thing.

        More about it.
        """

    @action('poke', policy=ASK)
    @api_version('2.3')
    def poke(self, req, id, body):
        """Poke a thing."""

    def helper(self):
        """No operation."""


def operations(controller):
    return {str(each): each for each in controller.operations}


def answering(controllers, method, path, text, action=None):
    found = RouteTable(controllers).find({'REQUEST_METHOD': method, 'PATH_INFO': path})
    bound = found.endpoint.choices[action].at(version(text))
    return bound and bound.operation.handler(bound.kind(), None)


def test_a_method_is_noted_with_its_path_and_left_as_it_is():
    show = operations(Things)['GET /things/{id}']
    assert (show.method, show.path, show.policy, show.min, show.max) == ('GET', '/things/{id}', ASK, MIN, MAX)
    assert show.handler is Things.show
    assert show.summary == 'Show a thing.'
    assert len(Things.operations) == 4


def test_the_decorators_may_stand_in_either_order():
    first, second = (each for each in Things.operations if str(each) == 'GET /things')
    assert (first.min, first.max) == (MIN, version('2.9'))
    assert (second.min, second.max) == (version('2.10'), MAX)


def test_several_methods_of_one_name_answer_in_turn():
    assert answering([Things], 'GET', '/things', '2.9') == 'old'
    assert answering([Things], 'GET', '/things', '2.10') == 'new'
    assert answering([Things], 'GET', '/things', '2.104') == 'new'


def test_one_method_may_be_several_operations():
    class Doors(Controller):
        path = '/doors'

        @operation('GET', '/front', policy=None)
        @operation('GET', '/back', policy=None)
        @api_version('2.5')
        def show(self, req):
            return 'door'

    assert {(each.path, str(each.min)) for each in Doors.operations} == {
        ('/doors/front', '2.5'),
        ('/doors/back', '2.5'),
    }


def test_an_action_is_a_post_that_answers_202():
    poke = operations(Things)['POST /things/{id}/action {poke}']
    assert (poke.method, poke.action, str(poke.min)) == ('POST', 'poke', '2.3')
    assert poke.answers.at(MAX) == (202, 'application/json')


def test_a_get_without_query_takes_no_parameters_and_a_post_does_not_look():
    show, poke = operations(Things)['GET /things/{id}'], operations(Things)['POST /things/{id}/action {poke}']
    assert show.query_validator.check({'x': ['1']}, MIN, legacy=False) == {}
    assert poke.query_validator.check({'x': ['1']}, MAX, legacy=False) == {'x': ['1']}


def test_overlapping_ranges_are_refused_when_the_app_is_built():
    class Clash(Controller):
        path = '/clash'

        @operation('GET', policy=None)
        @api_version('2.1', '2.9')
        def index(self, req): ...

        @operation('GET', policy=None)
        @api_version('2.9')
        def list(self, req): ...

    with pytest.raises(TypeError, match=r'GET /clash has two handlers at 2\.9'):
        RouteTable([Clash])


def test_two_controllers_may_not_answer_the_same_either():
    class Others(Controller):
        path = '/things'

        @operation('GET', '/{id}', policy=None)
        def show(self, req, id): ...

    with pytest.raises(TypeError, match='two handlers'):
        RouteTable([Things, Others])


def test_the_parameters_of_one_path_have_one_name():
    class Others(Controller):
        path = '/things'

        @operation('DELETE', '/{thing_id}', policy=None)
        def delete(self, req, thing_id): ...

    with pytest.raises(TypeError, match='the same names'):
        RouteTable([Things, Others])


def test_a_gap_between_two_ranges_answers_nothing():
    class Gap(Controller):
        path = '/gap'

        @operation('GET', policy=None)
        @api_version('2.1', '2.5')
        def index(self, req):
            return 'before'

        @operation('GET', policy=None)
        @api_version('2.9')
        def index(self, req):
            return 'after'

    assert answering([Gap], 'GET', '/gap', '2.5') == 'before'
    assert not answering([Gap], 'GET', '/gap', '2.6')
    assert answering([Gap], 'GET', '/gap', '2.9') == 'after'


@pytest.mark.parametrize('bounds', [(str(MAX.next),), ('2.1', '2.999'), ('abc',)])
def test_ranges_are_of_known_versions(bounds):
    with pytest.raises(ValueError):

        class Unknown(Controller):
            @operation('GET', policy=None)
            @api_version(*bounds)
            def index(self, req): ...


class Doors(Controller):
    """Doors, which are opened in another way from 2.9 on."""

    path = '/doors'

    @operation(
        'PUT', '/{id}', policy=ASK, status=changed({'2.1': 200, '2.9': 202}), behaviour={'loud': added('2.5', 1)}
    )
    def open(self, req, id):
        """Open a door."""
        return 'by hand'

    @api_version('2.9', '2.19')
    def open(self, req, id):
        """Open a door by itself."""
        return 'by itself'

    @api_version('2.20')
    def open(self, req, id):
        return 'by magic'


def test_the_same_name_again_takes_over_with_the_facts_of_the_first():
    first, second, third = Doors.operations
    assert [str(each.max) for each in Doors.operations] == ['2.8', '2.19', str(MAX)]
    assert [each.policy for each in Doors.operations] == [ASK] * 3
    assert [each.answers.at(each.max)[0] for each in Doors.operations] == [200, 202, 202]
    assert [each.summary for each in Doors.operations] == ['Open a door.', *['Open a door by itself.'] * 2]
    handlers = [each.handler(None, None, '1') for each in Doors.operations]
    assert handlers == ['by hand', 'by itself', 'by magic']


def test_behaviour_is_a_step_function_among_the_facts():
    first, *_ = Doors.operations
    assert [first.behaviours.at(version(text)).loud for text in ('2.4', '2.5', '2.8')] == [None, 1, 1]
    assert first.changes == {MIN, version('2.5')}


@pytest.mark.parametrize(
    ('first', 'second'),
    [(('2.1', '2.9'), ('2.9',)), (('2.1', '2.9'), ('2.20',)), (('2.10',), ('2.10',)), (('2.10',), ('2.3', '2.9'))],
    ids=['overlap', 'gap', 'twice', 'backwards'],
)
def test_who_takes_over_leaves_neither_overlap_nor_gap(first, second):
    with pytest.raises(TypeError):

        class Clash(Controller):
            @operation('GET', policy=None)
            @api_version(*first)
            def index(self, req): ...

            @api_version(*second)
            def index(self, req): ...


class Windows(Controller):
    """Windows, which there are from 2.5 to 2.50."""

    path = '/windows'
    versions = Bounds('2.5', '2.50')

    @operation('GET', policy=ASK)
    def index(self, req):
        """List the windows."""
        return 'all'

    @operation('GET', '/{id}', policy=ASK)
    @api_version('2.7')
    def show(self, req, id):
        """Show a window."""
        return 'plain'

    @api_version('2.9')
    def show(self, req, id):
        """Show a window with its curtains."""
        return 'with curtains'


def test_a_resource_may_be_there_at_some_versions_only():
    assert [(str(each.min), str(each.max)) for each in Windows.operations] == [
        ('2.5', '2.50'), ('2.7', '2.8'), ('2.9', '2.50')
    ]  # fmt: skip


def test_what_is_no_operation_has_no_versions():
    with pytest.raises(TypeError, match='no operation'):

        class Helper(Controller):
            @api_version('2.9')
            def index(self, req): ...


class Relatives(Things):
    """A subclass of a controller."""

    path = '/relatives'

    @operation('GET', '/{id}', policy=SEE)
    def show(self, req, id):
        """Show a relative."""


def test_a_subclass_has_the_operations_of_its_base_on_its_own_path():
    assert {str(each) for each in Relatives.operations} == {
        'GET /relatives', 'GET /relatives/{id}', 'POST /relatives/{id}/action {poke}'
    }  # fmt: skip
    assert {each.path.split('/')[1] for each in Things.operations} == {'things'}
    assert answering([Things, Relatives], 'GET', '/relatives', '2.10') == 'new'


def test_a_name_defined_again_replaces_the_operations_of_the_base():
    shown = [each for each in Relatives.operations if str(each) == 'GET /relatives/{id}']
    assert [each.policy for each in shown] == [SEE]
    assert shown[0].handler is Relatives.show


def test_fixed_paths_go_before_parameters():
    class Detail(Controller):
        path = '/things'

        @operation('GET', '/detail', policy=None)
        def detail(self, req):
            return 'detail'

    for order in ([Things, Detail], [Detail, Things]):
        assert answering(order, 'GET', '/things/detail', '2.1') == 'detail'


# ------------------------------------------------------------------ facts


def test_a_short_response_is_an_object_that_always_has_these_keys():
    thing = View({'id': Field({'type': 'string'}, attr('id'))})
    shown = Operation('GET', '/x', print, response={'thing': thing, 'more': added('2.9', {'type': 'null'})})
    assert shown.response_schema['additionalProperties'] is False
    assert shown.response_schema['properties']['thing'] == thing.schema
    assert shown.changes == {MIN, version('2.9')}


def test_a_schema_is_no_short_response():
    texts = {'type': 'object', 'additionalProperties': {'type': 'string'}}
    assert Operation('GET', '/x', print, response=texts).response_schema == texts


def test_the_changes_of_an_operation_are_inside_its_range():
    body = {'type': 'object', 'properties': {'a': added('2.5', {}), 'b': removed('2.50', {})}}
    update = Operation('PUT', '/x', print, min=version('2.9'), body=body, status=changed({'2.1': 200, '2.60': 202}))
    assert update.changes == {version('2.9'), version('2.50'), version('2.60')}
    assert [update.answers.at(version(text))[0] for text in ('2.9', '2.59', '2.60')] == [200, 200, 202]


def test_fields_that_may_be_missing_are_not_required():
    view = View(
        {
            'id': Field({}, attr('id')),
            'secret': Field({}, attr('secret'), policy=SEE),
            'fault': Field({}, attr('fault'), optional=True),
            'late': added('2.9', Field({}, attr('late'))),
        }
    )
    shown = Operation('GET', '/x', print, policy=ASK, response={'thing': view}, also=(ASK,))
    schema = shown.response_schema['properties']['thing']
    assert resolve(schema, MIN)['required'] == ['id']
    assert resolve(schema, MAX)['required'] == ['id', 'late']
    assert shown.policies == [ASK, SEE]
    assert list(views(shown.response)) == [view]


def test_a_request_is_asked_once_for_all_that_a_view_shows():
    asked = []

    def linked(req):
        asked.append(req)
        return lambda thing: f'{req.endpoint}/{thing.id}'

    view = View({'id': Field({}, attr('id')), 'link': Field({}, linked, request=True)})
    req = SimpleNamespace(version=MIN, endpoint='http://x')
    shown = view.render_all(req, [SimpleNamespace(id=1), SimpleNamespace(id=2)])
    assert shown == [{'id': 1, 'link': 'http://x/1'}, {'id': 2, 'link': 'http://x/2'}] and asked == [req]


def test_query_parameters_may_depend_on_the_version():
    limit = query({'limit': added('2.9', {'type': 'string', 'maxLength': 2})}, strict='2.50', single=True)
    check = Operation('GET', '/x', print, query=limit).query_validator.check
    given = {'limit': ['123'], 'x': ['1']}
    assert check(given, MIN, legacy=False) == {}
    assert check({'limit': ['12'], 'x': ['1']}, version('2.9'), legacy=False) == {'limit': ['12']}
    long = {'limit': ['1' * 1000]}
    for wrong, text in ((given, '2.9'), ({'limit': ['1', '2']}, '2.9'), ({'x': ['1']}, '2.50'), (long, '2.9')):
        # An invalid declaration is refused each time, even after valid ones.
        for _ in range(2):
            with pytest.raises(Exception, match='limit|unexpected'):
                check(wrong, version(text), legacy=False)


def test_v2_may_be_left_out_of_a_query():
    check = Operation('GET', '/x', print, query=query({}, strict='2.1', legacy=False)).query_validator.check
    assert check({'x': ['1']}, LEGACY, legacy=True) == {'x': ['1']}
