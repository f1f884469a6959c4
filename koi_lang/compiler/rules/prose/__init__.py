"""What is wrong in the sentences of playbooks, in English and Spanish; one module a kind of mistake.

A false alarm is worse than silence: a rule says something only where a person who reads the sentence would, too.
`[check] prose = false` in `koi.toml` turns all of them off.
"""

from __future__ import annotations

from koi_lang.compiler.rules.prose import braces, delegations, names, permissions, returned, values

__all__ = ["CODES", "MODULES"]

# Each of these enters its rules into the table when it is imported.
MODULES = (names, returned, permissions, delegations, values, braces)
CODES = frozenset({"E0621", "E0622", "E0623", "E0624", "E0625", "E0626", "E0627", "E0628"})
