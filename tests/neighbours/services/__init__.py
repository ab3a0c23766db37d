"""A cloud without compute, on this machine: what `tests/neighbours/start` runs, in an environment of published packages."""
