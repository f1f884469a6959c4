"""A stand-in for a model that follows the explicit steps of a playbook, offline and always the same way."""

from koi_lang.llm.rehearsal.model import Rehearsal

__all__ = ["Rehearsal"]
