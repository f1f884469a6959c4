"""Workflow scripts in JavaScript: the same calls of agents and the same value as in Node."""
