"""The version of koi-lang."""

__version__ = "0.5.0"
