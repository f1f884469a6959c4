"""The name and the version of the distribution."""

DISTRIBUTION = "koi-lang"
__version__ = "0.5.0"
