"""What systems do differently: locks of files, groups of processes, waiting for input."""
