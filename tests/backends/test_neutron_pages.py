"""A Neutron that limits the pages of its lists."""

from computeapi.backends.network.neutron.client import NeutronClient
from computeapi.context import Context

PAGES = {
    None: {'ports': [{'id': 'b', 'name': None}, {'id': 'c'}], 'ports_links': [{'rel': 'next', 'href': '?marker=c'}]},
    'c': {
        'ports': [{'id': 'd'}, {'id': 'a'}],
        'ports_links': [
            {'rel': 'previous', 'href': 'https://neutron.example.org/v2.0/ports?marker=d&page_reverse=True'},
            {'rel': 'next', 'href': 'https://neutron.example.org/v2.0/ports?id=a&id=b&marker=a'},
        ],
    },
    'a': {'ports': [], 'ports_links': [{'rel': 'previous', 'href': '?page_reverse=True'}]},
}


class Paging(NeutronClient):
    def __init__(self):
        self.asked = []

    def request(self, context, method, path, body=None, *, headers=None, params=None):
        self.asked.append((method, path, params))
        return PAGES[params.get('marker', [None])[0]]


def test_all_pages_are_read_by_the_queries_of_their_links():
    neutron = Paging()
    found = neutron.found(Context(), 'ports', device_id=['server'])
    assert found == [{'id': 'a'}, {'id': 'b'}, {'id': 'c'}, {'id': 'd'}]
    assert neutron.asked == [
        ('GET', '/ports', {'device_id': ['server']}),
        ('GET', '/ports', {'marker': ['c']}),
        ('GET', '/ports', {'id': ['a', 'b'], 'marker': ['a']}),
    ]


def test_names_with_two_words_have_a_hyphen_in_paths():
    class Empty(Paging):
        def request(self, *args, **kwargs):
            self.asked.append(args)
            return {'security_groups': []}

    neutron = Empty()
    assert neutron.found(Context(), 'security_groups') == []
    assert neutron.asked == [(Context(), 'GET', '/security-groups')]
