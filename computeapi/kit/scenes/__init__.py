"""A cloud as a file: loaded, written, made up, and read from a real one."""
