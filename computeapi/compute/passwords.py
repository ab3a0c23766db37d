"""Passwords of administrators of servers, as they are made for clients who bring none."""

from computeapi import chance

# Without what is easily taken for something else: 0 and O, 1, l and I.
GROUPS = ('23456789', 'ABCDEFGHJKLMNPQRSTUVWXYZ', 'abcdefghijkmnopqrstuvwxyz')


def generate(length: int) -> str:
    """A password with a digit, a capital and a small letter."""
    characters = [chance.choice(group) for group in GROUPS]
    characters += [chance.choice(''.join(GROUPS)) for _ in range(length - len(GROUPS))]
    return ''.join(chance.shuffled(characters))
