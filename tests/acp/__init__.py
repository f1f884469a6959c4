"""`koi acp`, with the client of the package `agent-client-protocol`."""
