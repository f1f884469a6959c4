"""The parts of the standard library that are written in Python; `stdlib_skills/*.koi` imports them."""
