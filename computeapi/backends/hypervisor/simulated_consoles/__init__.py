"""Consoles of virtual machines that nobody runs: what they wrote to their log, and a prompt that takes keys."""
