"""MCP servers that agents use: from the declarations of a program to live connections."""
