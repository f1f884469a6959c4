"""Many sessions in one process: programs, runs with an owner, what is told of them. It knows nothing of HTTP."""
