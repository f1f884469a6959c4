"""Record and replay: each effect takes place once, in spite of crashes."""
