"""`computeapi agent`: one compute host, a hypervisor's driver behind the message bus. It has no database.

What it must know after it was killed it keeps itself (`memory`): whose claim on a server is the newest, and what it did
last for it.
"""
