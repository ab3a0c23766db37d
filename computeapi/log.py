"""Where the log goes and what a line of it looks like.

Only the service's own lines can be made more verbose: libraries log headers and statements when they are
asked for more, and with them what is secret.
"""

import logging
import logging.handlers
from datetime import UTC, datetime

import orjson
from oslo_config import cfg

FORMAT = '%(asctime)s %(process)d %(levelname)s %(name)s [%(request_id)s] %(message)s'


class Lines(logging.Formatter):
    """Plain text, in UTC."""

    def __init__(self) -> None:
        super().__init__(FORMAT, defaults={'request_id': '-'})

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec='milliseconds')


class JSONLines(Lines):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            'time': self.formatTime(record),
            'process': record.process,
            'level': record.levelname,
            'logger': record.name,
            'request_id': getattr(record, 'request_id', None),
            'message': record.getMessage(),
        }
        if record.exc_info:
            line['exception'] = self.formatException(record.exc_info)
        return orjson.dumps(line).decode()


def start(conf: cfg.ConfigOpts, level: int = logging.INFO) -> None:
    """Log as the configuration says, from `level` on for the service itself and from WARNING on for libraries."""
    handler = logging.handlers.WatchedFileHandler(conf.log_file) if conf.log_file else logging.StreamHandler()
    handler.setFormatter(JSONLines() if conf.use_json else Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger('computeapi').setLevel(logging.DEBUG if conf.debug else level)
