"""Schema leaves that requests about servers share."""

from computeapi.compute.servers.lookup import MOST_TAGS
from computeapi.versions import changed

DESCRIPTION = {'type': ['string', 'null'], 'minLength': 0, 'maxLength': 255, 'pattern': r'^[^\x00-\x1f\x7f-\x9f]*$'}
HOSTNAME = changed(
    {
        '2.90': {
            'type': 'string',
            'minLength': 2,
            'maxLength': 63,
            'pattern': '^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$',
        },
        '2.94': {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[a-zA-Z0-9-._]*$'},
    }
)
IPV4 = {'type': 'string', 'format': 'ipv4'}
IPV6 = {'type': 'string', 'format': 'ipv6'}
DISK_CONFIG = {'type': 'string', 'enum': ['AUTO', 'MANUAL']}

METADATA_KEY = '^[a-zA-Z0-9-_:. ]{1,255}$'
METADATA = {
    'type': 'object',
    'patternProperties': {METADATA_KEY: {'type': 'string', 'maxLength': 255}},
    'additionalProperties': False,
}

TAG = {'type': 'string', 'minLength': 1, 'maxLength': 60, 'pattern': '^[^,/]*$'}
TAGS = {'type': 'array', 'items': TAG, 'maxItems': MOST_TAGS}
