"""Who calls whom in a program: its handlers and functions, the calls in them, and how often each is made."""
