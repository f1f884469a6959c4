"""The Python interface of Koi programs: open them, call their agents, follow their events."""
