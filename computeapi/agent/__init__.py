"""`computeapi agent`: one compute host, a hypervisor driver behind the message bus. It has no database.

What it must know after it was killed, it stores itself (`server_state`): the newest claim on each server, and what it
did last for that server.
"""
