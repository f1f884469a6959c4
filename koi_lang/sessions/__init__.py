"""A program that is prepared, run, recorded, resumed and talked to, for any surface."""
