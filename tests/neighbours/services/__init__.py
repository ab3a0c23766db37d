"""A cloud without compute on this machine: what `tests/neighbours/start` runs, from published packages."""
