class Thing:
    def __init__(self, n):
        self.n = n

    def double(self):
        return self.n * 2


def thing(n):
    return Thing(n)


def length(text):
    return len(text)


def pair(n):
    return (n, n + 1)
