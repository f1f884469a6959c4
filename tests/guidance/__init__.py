"""Instructions and skills of a project."""
