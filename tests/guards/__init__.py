"""The guards that nothing passes, whoever asks."""
