"""The standard library beyond what its programs state: pages, limits, and what it must not reach."""
