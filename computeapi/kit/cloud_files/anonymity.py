"""Makes a document anonymous: equal names, addresses and IDs are replaced by equal others.

Counts, sizes, times and states are unchanged, and addresses stay in their networks.
"""

import hashlib
import hmac
import ipaddress
import re
import secrets
from typing import Any

from computeapi.kit.cloud_files.document import texts_at

UUID = re.compile(r'[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}')
MAC = re.compile(r'([0-9a-f]{2}:){5}[0-9a-f]{2}')
NAME_KEYS = {
    'name',
    'hypervisor_hostname',
    'hostname',
    'key_name',
    'availability_zone',
    'pinned_availability_zone',
    'zone',
}
PROSE = {
    'description',
    'message',
    'details',
    'traceback',
    'locked_reason',
    'disabled_reason',
    'reservation_id',
    'dns_name',
}
LABELS = {'metadata', 'properties', 'image_metadata', 'image_properties', 'extra', 'creator', 'scheduler_hints', 'tags'}
"""Mappings and lists with arbitrary content of users."""
KEPT = {
    'default',
    'Default',
    'admin',
    'demo',
    'member',
    'reader',
    'service',
    'nova',
    '__DEFAULT__',
    'availability_zone',
    '',
}
FIXED_BITS = {4: 8, 6: 16}
USUAL_BITS = {4: 24, 6: 64}
SECTIONS_KEPT = ('flavors', 'volume_types')
"""Sections whose names do not identify the cloud."""


class Anonymity:
    """key: whoever has it can find out what a name was replaced by."""

    def __init__(self, document: dict[str, Any], key: bytes | None = None):
        self.document, self.key = document, key or secrets.token_bytes(32)
        self.prefixes = [ipaddress.ip_network(text, strict=False) for text in texts_at(document, 'cidr')]
        self.names = {
            name: self.word(name)
            for section, entries in document.items()
            if isinstance(entries, list) and section not in SECTIONS_KEPT
            for key in NAME_KEYS
            for name in texts_at(entries, key)
            if name not in KEPT
        }

    def applied(self) -> dict[str, Any]:
        """The anonymous document."""
        return {
            section: self._value(entries, '', keeps_names=section in SECTIONS_KEPT)
            for section, entries in self.document.items()
        }

    def _value(self, value: Any, key: str, *, keeps_names: bool = False) -> Any:
        if isinstance(value, dict):
            if key in LABELS:
                return {self._label(name): self._label(each) for name, each in value.items()}
            return {name: self._value(each, name, keeps_names=keeps_names) for name, each in value.items()}
        if isinstance(value, list):
            if key in LABELS:
                return [self._label(each) for each in value]
            return [self._value(each, key, keeps_names=keeps_names) for each in value]
        return self._text(value, key, keeps_names) if isinstance(value, str) else value

    def _text(self, text: str, key: str, keeps_names: bool) -> str:
        if found := self._identifier(text):
            return found
        if key == 'public_key':
            return f'ssh-rsa {self.digest(text).hex()} anonymous'
        if key in ('fingerprint', 'checksum', 'os_hash_value'):
            return re.sub(r'[0-9a-zA-Z]', lambda match: f'{self.digest(text)[match.start() % 32] % 16:x}', text)
        if key in PROSE:
            return self.word(text) if text else text
        if keeps_names:
            return text
        return self.names.get(text, text)

    def _label(self, value: Any) -> Any:
        if not isinstance(value, str) or value in KEPT:
            return value
        return self._identifier(value) or self.names.get(value) or self.word(value)

    def _identifier(self, text: str) -> str | None:
        """The replacement of an ID or an address; None for other text."""
        if UUID.fullmatch(text):
            made = self.digest(text.replace('-', '')).hex()[:32]
            return made if '-' not in text else '-'.join((made[:8], made[8:12], made[12:16], made[16:20], made[20:]))
        if text.startswith('req-') and UUID.fullmatch(text[4:]):
            return f'req-{self._identifier(text[4:])}'
        if MAC.fullmatch(text):
            return f'fa:16:3e:{self.digest(text)[:3].hex(":")}'
        return self._address(text)

    def _address(self, text: str) -> str | None:
        try:
            if '/' in text:
                network = ipaddress.ip_network(text, strict=False)
                return f'{self._moved(network.network_address, network.prefixlen)}/{network.prefixlen}'
            address = ipaddress.ip_address(text)
        except ValueError:
            return None
        lengths = [each.prefixlen for each in self.prefixes if address in each]
        return self._moved(address, max(lengths, default=USUAL_BITS[address.version]))

    def _moved(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address, length: int) -> str:
        """Change bits of the prefix. Two addresses have a common prefix of the same length afterwards as before."""
        bits, number = address.max_prefixlen, int(address)
        for place in range(FIXED_BITS[address.version], min(length, USUAL_BITS[address.version])):
            before = number_before(int(address), bits, place)
            if self.digest(f'{address.version}/{place}/{before}')[0] & 1:
                number ^= 1 << (bits - 1 - place)
        return str(type(address)(number))

    def word(self, text: str) -> str:
        return f'n{self.digest(text).hex()[:10]}'

    def digest(self, text: str) -> bytes:
        return hmac.digest(self.key, text.encode(), hashlib.sha256)


def number_before(number: int, bits: int, place: int) -> int:
    """The bits before a position."""
    return number >> (bits - place)
