"""Roman numerals from 1 to 3999."""

SIGNS = {
    1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC", 50: "L", 40: "XL", 10: "X", 9: "IX", 5: "V",
    4: "IV", 1: "I",
}


def to_roman(number: int) -> str:
    """A number as it is carved. Raises ValueError where there is no such numeral."""
    if not 1 <= number <= 3999:
        raise ValueError(f"there is no numeral for {number}")
    text = ""
    for value, sign in SIGNS.items():
        count, number = divmod(number, value)
        text += sign * count
    return text


def from_roman(text: str) -> int:
    """The number of a numeral. Raises ValueError where it is none."""
    number, rest = 0, text
    for value, sign in SIGNS.items():
        while rest.startswith(sign):
            number, rest = number + value, rest[len(sign) :]
    if rest or not 1 <= number <= 3999 or to_roman(number) != text:
        raise ValueError(f"{text!r} is no numeral")
    return number
