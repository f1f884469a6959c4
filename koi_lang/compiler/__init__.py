"""From the text of a program to Python syntax trees; pure, it reads files only through a function it is given."""
