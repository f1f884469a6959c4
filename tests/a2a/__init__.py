"""Agents that speak the A2A protocol, both ways."""
