"""Tasks that real models carry out through Koi, and how often they are right: `python -m benchmarks.models`."""
