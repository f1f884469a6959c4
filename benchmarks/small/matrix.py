"""A product of two matrices."""


def start(n: int) -> int:
    """The sum of the diagonal of the product of two matrices of n rows."""
    a = []
    b = []
    for i in range(n):
        left = []
        right = []
        for j in range(n):
            left.append((i * 7 + j) % 10)
            right.append((i + j * 3) % 10)
        a.append(left)
        b.append(right)
    trace = 0
    for i in range(n):
        for j in range(n):
            total = 0
            for k in range(n):
                total += a[i][k] * b[k][j]
            if i == j:
                trace += total
    return trace
