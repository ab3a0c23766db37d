"""An independent, wire-compatible implementation of the OpenStack compute API."""

__version__ = '0.1.0'
