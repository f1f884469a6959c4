"""One report a module, called like its function."""
