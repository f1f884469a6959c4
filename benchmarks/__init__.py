"""What Koi promises about its speed, measured: `python -m benchmarks`."""
