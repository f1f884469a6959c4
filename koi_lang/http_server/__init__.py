"""What all servers over HTTP share: where they listen, who may reach them, and until when they run."""
