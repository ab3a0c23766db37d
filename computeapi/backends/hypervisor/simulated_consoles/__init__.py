"""Consoles of simulated virtual machines: they show the console log, and a prompt that accepts keys."""
