"""The journal: a run as a file of entries that are only ever added."""
