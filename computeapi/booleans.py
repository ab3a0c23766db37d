"""The words for true and false in request bodies, query strings, image properties and extra specs."""

TRUE = ('True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes')
FALSE = ('False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no')


def is_true(value: object) -> bool:
    """Whether the value is True or a word for it."""
    return value is True or value in TRUE
