"""What a guest reads about the server that it runs in: the documents of a metadata service and of a config drive.

`reader` collects the facts of a server; from them the other modules make the documents, and ask nobody.
"""
