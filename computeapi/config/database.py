"""The options of the connection to the database."""

from oslo_config import cfg

DATABASE = [
    cfg.StrOpt(
        'connection',
        secret=True,
        default='sqlite:///computeapi.db',
        help='SQLAlchemy URL of the database: sqlite:///FILE, postgresql+psycopg://..., mysql+pymysql://...',
    ),
    cfg.IntOpt('max_pool_size', default=10, min=1, help='Number of connections that a process keeps open.'),
    cfg.FloatOpt(
        'statement_timeout',
        default=30,
        min=0,
        help='Maximum seconds per statement on PostgreSQL and MariaDB, except for those of `db upgrade`; 0: no limit.',
    ),
    cfg.FloatOpt(
        'lock_timeout',
        default=20,
        min=1,
        help='Seconds to wait for a lock of another connection; on SQLite, for the lock on the whole file. On other '
        'databases, a transaction that is idle for half as long is terminated.',
    ),
    cfg.FloatOpt(
        'connect_timeout',
        default=5,
        min=0,
        help='Seconds to wait for a new connection to PostgreSQL or MariaDB; 0: the timeout of the operating system.',
    ),
]
