"""The language server: answers to editors about Koi programs, from the compiler alone."""
