"""The HTTP server of `computeapi serve`: one WSGI app, its threads, and clients that may be slow or hostile.

An event loop communicates with clients, so that no client can block a thread: it passes a request to the app when the
request is complete, and requests the next piece of a response when the client has received the previous one. Only while
there are few clients, the thread that has responded waits for the next request itself for a moment (`keep_alive.py`).
Clients that miss a deadline are disconnected, and some are if there are too many. httptools (llhttp) parses the
protocol.

Existing servers were tested with the same attacks. Unread responses and incomplete requests block waitress and cheroot,
slow bodies block uvicorn with a2wsgi. uvicorn with a bridge and additional deadlines withstands them, but most of its
protocol had to be replaced, in 430 lines instead of 620, and it used 6 to 9 % more CPU than waitress (this server: up
to 5 %).
"""
