"""The language server: what editors ask about Koi programs, answered from the compiler alone."""
