"""HTTP Archive 1.2: http://www.softwareishard.com/blog/har-12-spec/. Names that begin with _ are extensions."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote

from computeapi import __version__
from computeapi.kit.journal.entry import Entry, RecordedMessage

UNKNOWN = -1
"""The value of the format for unknown or missing numbers."""
FACTS = (
    *('number', 'service', 'operation', 'microversion_asked', 'microversion_used'),
    *('user', 'project', 'user_name', 'project_name', 'error'),
)


def archive(entries: Iterable[Entry]) -> dict[str, Any]:
    """The archive. Bodies that were not kept have a comment instead of a text."""
    creator = {'name': 'computeapi', 'version': __version__}
    return {'log': {'version': '1.2', 'creator': creator, 'entries': [_entry(each) for each in entries]}}


def _entry(entry: Entry) -> dict[str, Any]:
    milliseconds = round(entry.duration * 1000, 3)
    return {
        'startedDateTime': f'{entry.time.isoformat(timespec="milliseconds")}Z',
        'time': milliseconds,
        'request': _request(entry),
        'response': _response(entry),
        'cache': {},
        'timings': {'send': 0, 'wait': milliseconds, 'receive': 0},
        **{f'_{name}': value for name in FACTS if (value := getattr(entry, name)) is not None},
    }


def _request(entry: Entry) -> dict[str, Any]:
    host = entry.request.header('Host') or 'localhost'
    url = f'http://{host}{quote(entry.path, safe="/:@!$&()*+,;=~-._")}'
    pairs = parse_qsl(entry.query, keep_blank_values=True)
    message = _message(entry.request) | {
        'method': entry.method,
        'url': f'{url}?{entry.query}' if entry.query else url,
        'queryString': [{'name': name, 'value': value} for name, value in pairs],
    }
    if entry.request.length:
        message['postData'] = {'mimeType': entry.request.header('Content-Type') or '', **_text(entry.request)}
    return message


def _response(entry: Entry) -> dict[str, Any]:
    status = entry.status or 0
    content = {'size': entry.response.length, 'mimeType': entry.response.header('Content-Type') or 'x-unknown'}
    return _message(entry.response) | {
        'status': status,
        'statusText': HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else '',
        'content': content | _text(entry.response),
        'redirectURL': entry.response.header('Location') or '',
    }


def _message(message: RecordedMessage) -> dict[str, Any]:
    """What requests and responses have in common."""
    return {
        'httpVersion': 'HTTP/1.1',
        'cookies': [],
        'headers': [{'name': name, 'value': value} for name, value in message.headers.items()],
        'headersSize': UNKNOWN,
        'bodySize': message.length,
    }


def _text(message: RecordedMessage) -> dict[str, str]:
    if message.length and not message.data:
        return {'text': '', 'comment': f'{message.length} bytes that were not kept'}
    return {'text': message.data.decode()}
