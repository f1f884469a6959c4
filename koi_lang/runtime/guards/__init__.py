"""Guards that no action passes: sizes, paths, hosts, commands, and the approval of the person."""
