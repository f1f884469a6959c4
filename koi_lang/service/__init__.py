"""Sessions of a service: programs, runs with owners, and their messages. Independent of HTTP."""
