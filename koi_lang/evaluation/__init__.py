"""Evaluations: a program over many cases, measured, and compared with an earlier time."""
