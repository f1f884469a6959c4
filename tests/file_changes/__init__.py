"""Files that runs have changed, and their undo."""
