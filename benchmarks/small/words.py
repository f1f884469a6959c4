"""Counting words."""


def start(n: int) -> list[int]:
    """How often words stand in a long text, counted twice."""
    text = "the quick brown fox jumps over the lazy dog while the cat sleeps under the warm sun" * n
    words = text.split(" ")
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    known: dict[str, int] = {}
    for word in words:
        known[word] = known.get(word, 0) + 1
    return [counts["the"], known["the"], len(known)]
