"""Agents that are processes, asked by the Agent Client Protocol."""
