"""Runs as traces of OpenTelemetry; nothing of it is loaded where no variable asks for traces."""
