"""Evaluations: what a program does with many cases, measured, and held against an earlier time."""
