"""What a run of a compiled program may do without, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import on_demand

if TYPE_CHECKING:
    from koi_lang.llm.embeddings import require_embeddings as require_embeddings
    from koi_lang.program.build import built as built
    from koi_lang.program.safe_expressions import evaluate as evaluate
    from koi_lang.setup.availability import embedder_of as embedder_of
    from koi_lang.setup.availability import model_of as model_of
    from koi_lang.setup.availability import require_provider as require_provider
    from koi_lang.setup.availability import with_provider as with_provider
else:
    __getattr__ = on_demand(
        __name__,
        {
            "koi_lang.program.build": ("built",),
            "koi_lang.program.safe_expressions": ("evaluate",),
            "koi_lang.llm.embeddings": ("require_embeddings",),
            "koi_lang.setup.availability": ("embedder_of", "model_of", "require_provider", "with_provider"),
        },
    )
