"""The debugger, over DAP and without an editor."""
