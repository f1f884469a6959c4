"""Completion on the command line: the scripts of shells, and what parameters of commands may be."""

# A shell that wants to know what may come next calls `koi` with this variable.
COMPLETE_VARIABLE = "_KOI_COMPLETE"
