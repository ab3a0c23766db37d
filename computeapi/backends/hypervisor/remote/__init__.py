"""Hypervisors on other machines: an agent on each one drives it, and is called over the message bus.

`calls` derives the messages from the Protocol, `codec` encodes them as JSON, `driver` sends them, and computeapi.agent
receives them.
"""
