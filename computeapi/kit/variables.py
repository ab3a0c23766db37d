"""How the control API of a cloud is found and asked by those who are not in its process."""

CONTROL_PATH, TOKEN_HEADER = '/control', 'X-Control-Token'
URL_VARIABLE, TOKEN_VARIABLE = 'COMPUTEAPI_CONTROL_URL', 'COMPUTEAPI_CONTROL_TOKEN'
"""What tells `computeapi control` where the API is and what it takes."""
LINES = 'application/jsonl'
"""The media type of what is told line by line, each a JSON object, as it happens."""

ARRIVED = 'computeapi.arrived'
"""When a request came that was delayed since, in its WSGI environment: in UTC, and by time.perf_counter."""
LOOK = 'computeapi.look'
"""Marks a request, in its WSGI environment, with which the page for people looks at the cloud: no test asked it."""
