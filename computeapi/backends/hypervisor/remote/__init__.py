"""Hypervisors on other machines: an agent on each drives it, and is told over the message bus what to do.

The Protocol is what is said over the bus (`calls`), as JSON (`codec`); `driver` says it, and computeapi.agent hears it.
"""
