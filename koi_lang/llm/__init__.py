"""Requests to language models turned into streams of text: adapters, stand-ins, and the records they share."""
