"""Cloud files: load and export them, generate them, and clone a real cloud."""
