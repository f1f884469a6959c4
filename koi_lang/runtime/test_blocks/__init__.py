"""What `test` and `eval` blocks need while they run: given answers, expectations and scores."""
