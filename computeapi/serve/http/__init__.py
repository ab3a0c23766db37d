"""The HTTP server of `computeapi serve`: one WSGI app, its threads, and clients that may be slow or hostile.

An event loop talks to clients, so that no client can hold up a thread: it hands a request to the app when the request
has arrived, and fetches the next piece of an answer when the client has taken the one before. Only while clients are
few, the thread that has answered one listens to it itself for a moment (`talk.py`). Whoever is slower than the
deadlines allow, or one of more connections than there may be, is sent away. httptools (llhttp) reads the protocol.

Servers that are there were tried first under the same attacks. Unread answers and half-sent requests stop waitress and
cheroot, slow bodies uvicorn with a2wsgi. uvicorn with a bridge and deadlines of our own holds, but most of its protocol
had to be replaced, in 430 lines instead of 620, for 6 to 9 % more CPU than waitress took (this: up to 5 %).
"""
