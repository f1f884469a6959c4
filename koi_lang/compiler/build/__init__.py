"""What the parser has recognised to nodes: one method a rule of the grammar, called while parsing."""

from koi_lang.compiler.build.declarations import Builder
from koi_lang.compiler.build.helpers import CONTEXTUAL, MIXED_OPERATORS, RESERVED, BuildError

__all__ = ["CONTEXTUAL", "MIXED_OPERATORS", "RESERVED", "BuildError", "Builder"]
