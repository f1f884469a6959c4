"""What Python programs do with Koi programs: open them, call their agents, follow what happens."""
