"""What `test` blocks need while they run: given answers and expectations."""
