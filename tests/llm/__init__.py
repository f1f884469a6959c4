"""Tests of the model adapters and stand-ins."""
