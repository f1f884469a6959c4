"""Routing: which agent or skill is meant by an intent."""
