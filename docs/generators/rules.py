"""Every rule of policy."""

from collections.abc import Iterator
from typing import Any

from computeapi import api
from generators.markdown import code, plain, table

HEAD = """# Rules

Who may do what: every policy rule under the name that operators know, with its default. `policy.yaml` overrides rules.
`computeapi policy` prints all rules as such a file, and `computeapi explain policy 'POST /servers' --role member` shows
whether a caller passes.
"""


def page() -> str:
    rules = list(api.rules())
    roles = [rule for rule in rules if not _asked_by(rule)]
    others = [rule for rule in rules if _asked_by(rule)]
    return '\n'.join([HEAD, *_part('Shared rules', roles), *_part('Rules of operations', others)])


def _part(title: str, rules: list[Any]) -> Iterator[str]:
    yield f'## {title}\n'
    yield table(('rule', 'default', 'checked by'), map(_row, rules))


def _row(rule: Any) -> tuple[str, str, str]:
    return f'{code(rule.name)} {plain(rule.description or "")}', code(rule.check_str), _asked_by(rule)


def _asked_by(rule: Any) -> str:
    return ', '.join(code(f'{use["method"]} {use["path"]}') for use in getattr(rule, 'operations', ()))
