"""What runs compiled programs: values, agents, playbooks, the registry, and one run as a whole."""
