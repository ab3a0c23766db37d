"""Consoles of servers at the URLs that the compute API gives out: a proxy between browsers, or other clients of
WebSockets, and what listens on a server's host; and pages for browsers.

doors.py: where each type of console is let in.  asked.py: what a request says.  proxy.py: who may pass, and passing
on.  pages/: what browsers show.  process.py: the proxy as `computeapi consoleproxy`.  background.py: within `serve`.
"""
