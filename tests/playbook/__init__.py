"""Playbooks: answers of models to actions that are carried out, bounded and remembered."""
