"""Files for editors, made of the grammar and the tables of the compiler: `python -m editors.generate` writes them."""
