"""Small programs, each in Koi and in plain Python."""
