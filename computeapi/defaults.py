"""The parts of the configuration that `computeapi --help` shows; kept here because the rest is slow to load."""

MACHINE_FILE = '/etc/computeapi/computeapi.conf'
"""The config file, if no other is named."""
WORKERS = 4
"""How many tasks a process runs at a time, if it runs any."""
