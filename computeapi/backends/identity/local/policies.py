"""Policies that operators store for other services."""

from computeapi.backends.identity.local.managers import PlainManager
from computeapi.db import catalog as queries
from computeapi.db.catalog import PolicyFile


class PolicyManager(PlainManager[PolicyFile]):
    records = queries.POLICIES
    noun = 'policy'
    defaults = {'extra': {}}
