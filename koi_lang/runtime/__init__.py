"""The runtime of compiled programs: values, agents, playbooks, the registry, and runs."""
