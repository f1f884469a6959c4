def mean(values):
    """The mean of some numbers."""
    return sum(values) / len(values)
