"""Attacks that are tried against Koi: `python -m benchmarks.security` counts how many hold."""
