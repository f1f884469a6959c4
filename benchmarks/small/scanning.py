"""Reading a text character by character."""


def start(n: int) -> list[int]:
    """The letters, the digits and the open brackets of a text."""
    text = "let x = (a + b1) * 42; // the answer\n" * n
    letters = 0
    digits = 0
    depth = 0
    for i in range(len(text)):
        c = text[i]
        if ("a" <= c <= "z") or ("A" <= c <= "Z"):
            letters += 1
        elif "0" <= c <= "9":
            digits += 1
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
    return [letters, digits, depth]
