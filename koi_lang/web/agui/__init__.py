"""The programs of a service by AG-UI, for pages that are made for that protocol."""
