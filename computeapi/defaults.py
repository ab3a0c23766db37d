"""What `computeapi --help` tells of the configuration, which takes longer to load than to tell."""

MACHINE_FILE = '/etc/computeapi/computeapi.conf'
"""The configuration, if no other is named."""
WORKERS = 4
"""On how many tasks a process works at a time, if it works on any."""
