"""Long outputs of actions: kept whole in files, told by their ends, read piece by piece."""
