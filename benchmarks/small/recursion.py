"""A function that calls itself."""


def start(n: int) -> int:
    """The n-th number of Fibonacci."""

    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(n)
