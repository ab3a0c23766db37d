"""Consoles of servers at the URLs that the compute API returns: a WebSocket proxy between clients, such as browsers,
and the console ports on a server's host; and pages for browsers.

listeners.py: the listening port of each console type.  requests.py: parsing of requests.  proxy.py: authorization and
forwarding.  pages/: the browser pages.  process.py: the proxy as `computeapi consoleproxy`.  background.py: the proxy
within `serve`.
"""
