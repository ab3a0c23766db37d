"""Common schemas of requests about servers."""

from typing import Any

from computeapi.api.types import HOST, NULLABLE_STRING, STRING
from computeapi.compute.servers.tags import MAX_TAGS
from computeapi.versions import changed
from computeapi.web.schemas import array, lone, one_of, whole

DESCRIPTION = NULLABLE_STRING | {'minLength': 0, 'maxLength': 255, 'format': 'printable'}
HOSTNAME = changed(
    {
        '2.90': {
            'type': 'string',
            'pattern': '^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$',
            'minLength': 2,
            'maxLength': 63,
        },
        '2.94': HOST,
    }
)
IPV4 = {'type': 'string', 'format': 'ipv4'}
IPV6 = {'type': 'string', 'format': 'ipv6'}
ADDRESS = {'type': 'string', 'anyOf': [IPV4, IPV6]}
FLAVOR_REF = {'type': ['string', 'integer'], 'minLength': 1}
HOST_OR_NULL = HOST | {'type': ['string', 'null']}
DISK_CONFIG = one_of('AUTO', 'MANUAL')
FILE = whole({'path': STRING, 'contents': {'type': 'string', 'format': 'base64'}})
CERTIFICATES = {
    'type': ['array', 'null'],
    'minItems': 1,
    'maxItems': 50,
    'uniqueItems': True,
    'items': {'type': 'string', 'minLength': 1},
}
USER_DATA = {'type': 'string', 'format': 'base64', 'maxLength': 65535}


def metadata_of(value: Any) -> dict[str, Any]:
    """The schema of items with such values."""
    keys = '^[a-zA-Z0-9-_:. ]{1,255}$'
    return {'type': 'object', 'patternProperties': {keys: value}, 'additionalProperties': False}


METADATA = metadata_of({'type': 'string', 'maxLength': 255})
ITEMS_BODY = lone('metadata', METADATA)
ITEM_BODY = lone('meta', METADATA | {'minProperties': 1, 'maxProperties': 1})

TAG = {'type': 'string', 'minLength': 1, 'maxLength': 60, 'pattern': '^[^,/]*$'}
TAGS = array(TAG) | {'maxItems': MAX_TAGS}
