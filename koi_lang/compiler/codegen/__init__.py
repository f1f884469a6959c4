"""Nodes to Python syntax trees whose positions are those of the Koi source."""
