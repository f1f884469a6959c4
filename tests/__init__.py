"""Tests of koi_lang."""
