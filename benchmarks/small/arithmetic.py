"""Sums and remainders in a loop."""


def start(n: int) -> int:
    """Mix the numbers below n."""
    total = 0
    for i in range(n):
        total = (total + i * 3) % 1000003
        if total > 500000:
            total -= 7
    return total
