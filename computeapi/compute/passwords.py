"""Administrator passwords of servers, generated for clients that provide none."""

from computeapi import randomness

# Without characters that are easily confused: 0 and O, 1, l and I.
GROUPS = ('23456789', 'ABCDEFGHJKLMNPQRSTUVWXYZ', 'abcdefghijkmnopqrstuvwxyz')


def generate(length: int) -> str:
    """A password with at least one digit, one upper-case and one lower-case letter."""
    characters = [randomness.choice(group) for group in GROUPS]
    characters += [randomness.choice(''.join(GROUPS)) for _ in range(length - len(GROUPS))]
    return ''.join(randomness.shuffled(characters))
