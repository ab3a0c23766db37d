"""The destination and format of the log.

Only the lines of the service itself can be made more verbose: at higher verbosity, libraries log headers and
statements, and the secrets in them.
"""

import functools
import logging
import logging.handlers
import re
from datetime import UTC, datetime

import orjson
from oslo_config import cfg

from computeapi.context import ACTING

# The fields of a line that identify the caller.
CALLER = ('request_id', 'global_request_id', 'user_id', 'project_id')
CONTROL = re.compile('[\x00-\x1f\x7f-\x9f\u2028\u2029]')
"""Characters that end a line, or that a terminal obeys."""


class Lines(logging.Formatter):
    """Plain text, in UTC; a message is one printable line, whatever clients have put into it.

    Each request writes a line; a format string, as logging has it, would take twice as long.
    """

    def format(self, record: logging.LogRecord) -> str:
        caller = getattr(record, 'request_id', None) or '-'
        beginning = f'{self.formatTime(record)} {record.process} {record.levelname} {record.name} [{caller}]'
        line = CONTROL.sub(_escaped, f'{beginning} {record.getMessage()}')
        return f'{line}\n{self.formatException(record.exc_info)}' if record.exc_info else line

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return f'{_second(int(record.created))}.{int(record.msecs):03}+00:00'


@functools.lru_cache(maxsize=1)
def _second(moment: int) -> str:
    """The time without fractions, which most lines share with the line before."""
    return datetime.fromtimestamp(moment, UTC).strftime('%Y-%m-%dT%H:%M:%S')


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode('unicode_escape').decode()


class JSONLines(Lines):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            'time': self.formatTime(record),
            'process': record.process,
            'level': record.levelname,
            'logger': record.name,
            **{name: getattr(record, name, None) for name in CALLER},
            'message': record.getMessage(),
        }
        if record.exc_info:
            line['exception'] = self.formatException(record.exc_info)
        return orjson.dumps(line).decode()


class Callers(logging.Filter):
    """Adds the caller to each line, where it is known and the line does not state it."""

    def filter(self, record: logging.LogRecord) -> bool:
        caller = ACTING.get()
        for name in CALLER:
            if getattr(record, name, None) is None:
                setattr(record, name, getattr(caller, name, None))
        return True


def start(conf: cfg.ConfigOpts, level: int = logging.INFO) -> None:
    """Set up logging as configured, from `level` up for the service itself and from WARNING up for libraries."""
    handler = logging.handlers.WatchedFileHandler(conf.log_file) if conf.log_file else logging.StreamHandler()
    handler.setFormatter(JSONLines() if conf.use_json else Lines())
    handler.addFilter(Callers())
    # No line shows these, and logging would look them up for each; _srcfile is for the location of the logging call.
    # See "Optimization" in the logging HOWTO.
    logging.logThreads = logging.logMultiprocessing = False
    logging._srcfile = None
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger('computeapi').setLevel(logging.DEBUG if conf.debug else level)
