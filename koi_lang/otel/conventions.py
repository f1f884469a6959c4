"""Names of the GenAI semantic conventions, and the values of events for them.

The names stand here because the conventions are in development: the package that lists them deprecates its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from koi_lang.events import OMITTED, unless_omitted

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT, WORKFLOW = "gen_ai.agent.name", "gen_ai.workflow.name"
REQUEST_MODEL, RESPONSE_MODEL = "gen_ai.request.model", "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
CACHED_TOKENS, THINKING_TOKENS = "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.reasoning.output_tokens"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
SYSTEM = "gen_ai.system_instructions"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
ERROR = "error.type"
OTHER_ERROR = "_OTHER"
# What the conventions have no name for.
RUN = "koi.run.id"
HANDLER = "koi.handler"
PATH = "koi.path"
COST = "koi.usage.cost_usd"
ESTIMATED = "koi.usage.estimated"
REPLAYED = "koi.replayed"
CANCELLED = "koi.cancelled"

INVOKE_WORKFLOW = "invoke_workflow"
INVOKE_AGENT = "invoke_agent"
EXECUTE_TOOL = "execute_tool"
CHAT = "chat"
EMBEDDINGS = "embeddings"
# Providers that the conventions call otherwise.
PROVIDERS = {"bedrock": "aws.bedrock", "gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
TOKENS = {"input": INPUT_TOKENS, "output": OUTPUT_TOKENS, "cached": CACHED_TOKENS, "thinking": THINKING_TOKENS}

Attributes = dict[str, Any]


def model_attributes(model: str) -> Attributes:
    """The provider and the model of a `provider/model`."""
    provider, _, name = model.partition("/")
    return {PROVIDER: PROVIDERS.get(provider, provider), REQUEST_MODEL: name or provider}


def usage_attributes(tokens: Mapping[str, int], usd: float | None, estimated: Any) -> Attributes:
    """The usage of an answer."""
    found: Attributes = {TOKENS[kind]: number for kind, number in tokens.items() if kind in TOKENS}
    if usd is not None:
        found[COST] = float(usd)
    if unless_omitted(estimated):
        found[ESTIMATED] = True
    return found


def message_text(role: str, *texts: str, stop: str | None = None) -> str:
    """One message as the JSON list that the conventions describe."""
    message: Attributes = {"role": role, "parts": [{"type": "text", "content": text} for text in texts]}
    if role == "assistant":
        message["finish_reason"] = stop or ""
    return json.dumps([message], ensure_ascii=False)


def messages_text(messages: Sequence[Sequence[str]]) -> str:
    """Pairs of role and text as that list."""
    parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    return json.dumps(parts, ensure_ascii=False)


def json_text(value: Any) -> str:
    """Any value of an event as JSON; empty where it is omitted."""
    return "" if value is OMITTED else json.dumps(value, ensure_ascii=False, default=str)
