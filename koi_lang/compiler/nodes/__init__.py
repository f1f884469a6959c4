"""The syntax tree of Koi: one frozen class a construct, named like its grammar rule.

Nodes compare and hash by identity, so that tables may be keyed by them.
"""

# ruff: noqa: F403 - a class of nodes is entered where it is written, and nowhere else
from koi_lang.compiler.nodes.base import *
from koi_lang.compiler.nodes.declarations import *
from koi_lang.compiler.nodes.executable import *
