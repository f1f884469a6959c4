"""Building texts."""


def start(n: int) -> int:
    """The length of some lines with n items."""
    lines = []
    line = ""
    for i in range(n):
        name = "item" + str(i)
        line += f"{name}={i * 2};"
        if len(line) > 60:
            lines.append(line)
            line = ""
    return len("\n".join(lines))
