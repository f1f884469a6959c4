"""A program served to one other program: commands in, responses and events out."""
