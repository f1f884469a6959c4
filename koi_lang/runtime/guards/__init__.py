"""Guards that no action passes: sizes, paths and hosts."""
