"""The sieve of Eratosthenes."""


def start(n: int) -> int:
    """How many primes there are up to n."""
    prime = [True] * (n + 1)
    count = 0
    for i in range(2, n + 1):
        if not prime[i]:
            continue
        count += 1
        for j in range(i * i, n + 1, i):
            prime[j] = False
    return count
