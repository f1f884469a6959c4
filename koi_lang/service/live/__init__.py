"""Runs that other processes of the same person follow, answer and steer, over a socket for each."""
