"""Values of a program as content for a model: images as images, other data as a note.

In a program, and in the journal, an image is what MCP servers give: `{ type: "image", mimeType, data }`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from koi_lang.js.json_text import stringify_exactly
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.llm import images as llm_images
    from koi_lang.llm.images import Image
else:
    llm_images = lazy_module("koi_lang.llm.images")

TYPE = "image"
# Levels of a value that are looked through.
MAX_DEPTH = 200
# How images of each format begin in base64; no secret does, and no words.
ENCODED = r"(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/]{64,}={0,2}"
# How the data of an image begins in JSON.
DATA_FIELD = '"data":"'
DATA, QUOTED = re.compile(ENCODED), re.compile(f'{DATA_FIELD}{ENCODED}"')


def value_of(image: Image) -> dict[str, Any]:
    """An image as a value of a program."""
    return {"type": TYPE, "mimeType": image.media_type, "data": image.data}


def image_in(value: Any) -> Image | None:
    """The image in a value; None for other values and for formats that models do not read."""
    if not isinstance(value, dict) or value.get("type") != TYPE or not isinstance(value.get("data"), str):
        return None
    try:
        return llm_images.Image.from_base64(value["data"])
    except llm_images.BadImageError:
        return None


def medium(value: Any) -> str | None:
    """An image or another piece of data as a model is told of it: `[image, image/png, 12 kB]`; None for the rest."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    data = value.get("data")
    mime = value.get("mimeType")
    if kind in (TYPE, "audio") and isinstance(data, str):
        return f"[{kind}, {mime}, {llm_images.size_text(llm_images.size_of(data))}]"
    if isinstance(value.get("uri"), str) and isinstance(value.get("blob"), str):
        return f"[file, {mime or 'of an unknown type'}, {llm_images.size_text(llm_images.size_of(value['blob']))}]"
    return None


def prompt_text(value: Any) -> str:
    """A value as JSON text, with notes in place of data. Raises ErrorValue for values beyond JSON."""
    return str(stringify_exactly(value, lambda key, item: medium(item) or item))


def replace_images(value: Any) -> Any:
    """Data without cycles, with notes in place of images and other data."""
    note = medium(value)
    if note is not None:
        return note
    if isinstance(value, dict):
        return {name: replace_images(item) for name, item in value.items()}
    return [replace_images(item) for item in value] if isinstance(value, list) else value


def images_in(value: Any) -> tuple[Image, ...]:
    """The images in a value, in order, each once."""
    found: dict[Image, None] = {}
    _each(value, (), lambda image: found.setdefault(image))
    return tuple(found)


def _each(value: Any, around: Sequence[int], take: Callable[[Image], object]) -> None:
    if not isinstance(value, (dict, list, tuple)) or len(around) > MAX_DEPTH or id(value) in around:
        return
    image = image_in(value)
    if image is not None:
        take(image)
        return
    for item in value.values() if isinstance(value, dict) else value:
        _each(item, (*around, id(value)), take)


def is_data(text: str) -> bool:
    """Whether a text is the data of an image."""
    return DATA.fullmatch(text) is not None


def without_data(text: str) -> str:
    """JSON text, in which `DATA_FIELD` occurs, without the data of the images in it."""
    return QUOTED.sub(f'{DATA_FIELD}"', text)
