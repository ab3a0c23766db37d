"""The tables, one module per service; importing this package registers them all."""

from computeapi.db.tables import catalog, compute, identity, image, network, servers, share, usage, volume
from computeapi.db.tables.types import metadata

__all__ = ['catalog', 'compute', 'identity', 'image', 'metadata', 'network', 'servers', 'share', 'usage', 'volume']
