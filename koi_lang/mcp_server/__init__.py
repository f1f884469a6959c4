"""A program to an MCP server: its exposed agents are tools, its prompts prompts, its sources resources."""
