"""Changes of project files by a run: contents are stored before, reported after, and restored on demand."""
