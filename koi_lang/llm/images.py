"""Images for messages, made from bytes, or a refusal with the reason."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from koi_lang.errors import KoiError

# What every provider with models that see takes (OpenAI, Anthropic, Gemini, DeepSeek), by its first bytes.
BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
RIFF, WEBP = b"RIFF", b"WEBP"
# Anthropic takes 5 MiB an image and counts the encoded text, which is a third longer; the others take more, apart from
# Groq with 4 MB for a whole request.
MAX_BYTES = 5 * 2**20 * 3 // 4
# From the 21st image of a request on, Anthropic takes none with a side of more than 2000 pixels.
MAX_IMAGES = 20
# Of a whole request Gemini takes 20 MB, Anthropic 32 MB, DeepSeek 48 MiB.
MAX_ENCODED_BYTES = 18 * 2**20
# Anthropic makes images smaller that would take more (its page on vision: about width x height / 750 tokens, at most
# about 1600); tiled by OpenAI they take at most 1445. Some small models of OpenAI count several times as much.
TOKENS = 1600
KILO = 1000
FORMS = "Models read PNG, JPEG, GIF and WebP."


class BadImageError(KoiError):
    """A value is no image that models read, or is too large."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture; make it with `of` or `encoded`.

    Attributes:
        media_type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        data: its bytes in base64.
    """

    media_type: str
    data: str

    @staticmethod
    def of(content: bytes, name: str = "the image") -> Image:
        """The image that some bytes are, by their beginning. Raises BadImageError, which calls it by its name."""
        media_type = media_type_of(content)
        if media_type is None:
            message = f"`{name}` is empty" if not content else f"`{name}` is no image that models read"
            raise BadImageError(message, help=FORMS)
        require_small(len(content), name)
        return Image(media_type, b64encode(content).decode())

    @staticmethod
    def from_base64(data: str, name: str = "the image") -> Image:
        """The same for bytes in base64."""
        try:
            content = b64decode(data, validate=True)
        except ValueError as error:
            raise BadImageError(f"the data of `{name}` is not base64", help=FORMS) from error
        return Image.of(content, name)

    def __repr__(self) -> str:
        return f"Image({self.media_type}, {self.size} bytes)"

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return size_of(self.data)

    @property
    def url(self) -> str:
        """The image as an address that contains it."""
        return f"data:{self.media_type};base64,{self.data}"

    @property
    def digest(self) -> str:
        """A short text that is another one for every other image."""
        return blake2b(self.data.encode(), digest_size=16).hexdigest()


def require_small(size: int, name: str) -> None:
    """Raise BadImageError, which calls an image by its name, when it has too many bytes."""
    if size > MAX_BYTES:
        most = f"an image may have at most {size_text(MAX_BYTES)}"
        raise BadImageError(f"`{name}` has {size_text(size)}, and {most}", help="Make it smaller, or cut it.")


def require_few(images: Sequence[Image]) -> None:
    """Raise BadImageError when one message has more images, or larger ones, than providers take at once."""
    if len(images) > MAX_IMAGES:
        help = "Send them in several messages."
        raise BadImageError(f"the message has {len(images)} images, and it may have at most {MAX_IMAGES}", help=help)
    if sum(len(image.data) for image in images) > MAX_ENCODED_BYTES:
        most = size_text(MAX_ENCODED_BYTES * 3 // 4)
        raise BadImageError(f"the images of the message have more than {most} together", help="Make them smaller.")


def size_of(data: str) -> int:
    """How many bytes a text in base64 stands for."""
    return len(data.rstrip("=")) * 3 // 4


def size_text(count: int) -> str:
    """A number of bytes as people read it."""
    if count < KILO:
        return f"{count} bytes"
    return f"{count / KILO:.0f} kB" if count < KILO**2 else f"{count / KILO**2:.1f} MB"


def media_type_of(content: bytes) -> str | None:
    """The kind of image that some bytes begin like; None where models read no such kind."""
    if content[:4] == RIFF and content[8:12] == WEBP:
        return "image/webp"
    return next((media_type for begun, media_type in BEGINNINGS if content.startswith(begun)), None)
