"""`computeapi replay`: sends recorded requests to one or two other clouds, and compares the responses."""
