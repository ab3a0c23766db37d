"""How other processes find and call the control API of a cloud."""

CONTROL_PATH, TOKEN_HEADER = '/control', 'X-Control-Token'
URL_VARIABLE, TOKEN_VARIABLE = 'COMPUTEAPI_CONTROL_URL', 'COMPUTEAPI_CONTROL_TOKEN'
"""Environment variables in which `computeapi control` finds the URL of the API and its token."""
LINES = 'application/jsonl'
"""The media type of a stream of lines, each a JSON object."""

ARRIVED = 'computeapi.arrived'
"""The key in a WSGI environ for when a request arrived that was delayed: in UTC, and by time.perf_counter."""
LOOK = 'computeapi.look'
"""The key in a WSGI environ that marks a read of the web interface, which no test made."""
