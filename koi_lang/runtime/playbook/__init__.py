"""Playbooks: text that a model turns, answer by answer, into actions that the runtime executes."""
