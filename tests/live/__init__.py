"""Runs that other processes follow."""
