"""Record and replay: each effect takes place once, whatever comes of the process."""
