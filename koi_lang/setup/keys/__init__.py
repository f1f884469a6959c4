"""Keys of model providers: where they are found, where they are kept, and how they stay out of sight."""
