"""A request with images turned into one that its model can read, or refused before it costs anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from koi_lang.errors import RequestError
from koi_lang.llm.connection import Provider, ProviderConnection
from koi_lang.llm.images import MOST_ENCODED, MOST_IMAGES, Image
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.models import card_of
from koi_lang.llm.usage import has_images

ELSEWHERE = "Choose one that does with `-m provider/model`, such as `-m anthropic/sonnet`."


class VisionUnsupportedError(RequestError):
    """A model was shown an image and reads text only; the same request fails again."""

    def __init__(self, message: str, *, help: str | None = None, status: int | None = None) -> None:
        super().__init__(message, help=help, status=status)
        self.repeatable = False


def seen(request: Request, connection: ProviderConnection) -> Request:
    """The request with as many of its images as its model may be sent, the newest; what is left out is told in texts.

    A model that is known to read text only can go on with a conversation in which there were images. Raises
    VisionUnsupportedError when there are some that no answer has followed yet. Of other models nothing is known, and
    the provider decides.
    """
    if not has_images(request.messages):
        return request
    if card_of(request.model).vision is not False:
        return _limit_images(request)
    if has_images(_new_messages(request.messages)):
        raise VisionUnsupportedError(f"`{request.model}` cannot see images", help=_help(connection.provider))
    return replace(request, messages=tuple(replace(message, images=()) for message in request.messages))


def _new_messages(messages: Sequence[Message]) -> Sequence[Message]:
    answered = [index for index, message in enumerate(messages) if message.role == "assistant"]
    return messages[answered[-1] + 1 :] if answered else messages


def _limit_images(request: Request) -> Request:
    """The request without the oldest of its images where there are too many."""
    left, room, kept = MOST_IMAGES, MOST_ENCODED, list[Message]()
    for message in reversed(request.messages):
        images = list[Image]()
        for image in reversed(message.images):
            left, room = left - 1, room - len(image.data)
            if left >= 0 and room >= 0:
                images.insert(0, image)
        kept.insert(0, message if len(images) == len(message.images) else replace(message, images=tuple(images)))
    return replace(request, messages=tuple(kept))


def _help(provider: Provider) -> str:
    own = provider.seeing or (provider.model if card_of(provider.model).vision else "")
    return f"`{own}` can: choose it with `-m {provider.name}/{own}`." if own else ELSEWHERE
