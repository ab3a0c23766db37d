"""Policies that operators store for other services."""

from computeapi.standalone.identity.base import NAME, KeystoneCollection, Noun

PROPERTIES = {'type': NAME, 'blob': {'type': 'string', 'maxLength': 65535}}


class KeystonePolicies(KeystoneCollection):
    path = '/policies'
    kind = 'policies'
    noun = Noun('policy', PROPERTIES, ('type', 'blob'), ('type',))
