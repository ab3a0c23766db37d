"""What a guest reads about its server: the documents of the metadata service and of the config drive.

`reader` collects the facts about a server; the other modules build the documents from them, without any queries.
"""
