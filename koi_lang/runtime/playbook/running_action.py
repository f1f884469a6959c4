"""An action of a playbook while it is carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from koi_lang.runtime.actions.layers import RunningAction
from koi_lang.runtime.playbook.action_parsing import Action
from koi_lang.runtime.playbook.call import PlaybookCall
from koi_lang.runtime.playbook.lenient_fields import read_values
from koi_lang.runtime.playbook.lenient_inputs import read_inputs
from koi_lang.runtime.playbook.references import ActionScope


@dataclass(slots=True)
class PlaybookAction(RunningAction):
    """An action of a playbook that is being carried out.

    Attributes:
        names: what its references can mention.
        action: as the model wrote it, by the name that it is known by.
        is_delegated: whether it is for a team member; `kind` says for which one once that is known.
        read_as: how it was read where the model wrote it otherwise.
        is_literal: whether it is taken as written, since an earlier part of the run has taken it so.
        filled: its fields with their references replaced, once somebody needed them.
        is_withheld: whether a person at a debugger has not let it be carried out.
    """

    call: PlaybookCall
    names: ActionScope
    action: Action
    is_delegated: bool
    read_as: list[str] = field(default_factory=list)
    is_literal: bool = False
    filled: dict[str, Any] | None = None
    is_withheld: bool = False

    def fill(self) -> dict[str, Any]:
        """The fields with their references replaced, as the action asks for them.

        Raises:
            AgentError: that gets too large.
        """
        if self.filled is None:
            self.filled = self.names.substitute(self.action.data)
            if not self.is_literal:
                self._read_values(self.filled)
        return self.filled

    def _read_values(self, filled: dict[str, Any]) -> None:
        fields, notes = read_values(self.kind, filled)
        type = self.call.result_type
        result = {} if type is None else type.schema
        self.filled, given = read_inputs(
            self.context.agent, self.kind, fields, is_delegated=self.is_delegated, result=result
        )
        self.read_as += [*notes, *given]
