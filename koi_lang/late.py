"""What a run of a compiled program may do without, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.loading import on_demand

if TYPE_CHECKING:
    from koi_lang.building import built as built
    from koi_lang.expressions import evaluate as evaluate
    from koi_lang.llm.embeddings import require_embeddings as require_embeddings
    from koi_lang.reach import embedder_of as embedder_of
    from koi_lang.reach import model_of as model_of
    from koi_lang.reach import require_provider as require_provider
    from koi_lang.reach import with_provider as with_provider
else:
    __getattr__ = on_demand(
        __name__,
        {
            "koi_lang.building": ("built",),
            "koi_lang.expressions": ("evaluate",),
            "koi_lang.llm.embeddings": ("require_embeddings",),
            "koi_lang.reach": ("embedder_of", "model_of", "require_provider", "with_provider"),
        },
    )
