"""Generated programs in Koi and in Node: what is printed has to be the same."""
