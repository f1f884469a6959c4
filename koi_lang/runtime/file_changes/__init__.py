"""What the actions of a run change of the files of its project: kept before, told after, and put back later."""
