"""The runtime of `test` and `eval` blocks: scripted answers, expectations and scores."""
