"""The debugger: an adapter that speaks DAP, and the process in which a program runs under a tracer."""
