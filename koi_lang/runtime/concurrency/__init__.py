"""Tasks that end before their parent goes on, and code that is cancelled, also while it computes."""
