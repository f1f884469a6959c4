"""The service: many sessions in one process, over HTTP."""
