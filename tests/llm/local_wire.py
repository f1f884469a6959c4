"""What servers that people run say of their models, as they say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

FILE = "/models/smollm2-135m-instruct.gguf"


class LocalServer(NamedTuple):
    """The list of a server, and what it has beside."""

    models: list[Mapping[str, Any]]
    documents: Mapping[str, Any] = {}


def llama_cpp(
    id: str = "qwen", *, has_tools: bool = True, context: int = 8192, parameters: int = 7_615_616_512
) -> LocalServer:
    """llama.cpp, a build of November 2026; without an alias the id is the path of the file."""
    meta = {"vocab_type": 2, "n_vocab": 151936, "n_ctx": context, "n_ctx_train": 32768, "n_params": parameters}
    entry = {
        "id": id,
        "aliases": [id],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "created": 1795892756,
        "owned_by": "llamacpp",
        "meta": meta,
    }
    caps = {"supports_string_content": True, "supports_system_role": True}
    props = {
        "default_generation_settings": {"params": {"temperature": 0.8, "max_tokens": -1}, "n_ctx": context},
        "total_slots": 1,
        "model_alias": id,
        "model_path": FILE,
        "modalities": {"vision": False, "video": False, "audio": False},
        "chat_template": "{% for message in messages %}",
        "chat_template_caps": {**caps, "supports_tool_calls": has_tools, "supports_tools": has_tools},
        "build_info": "b0-unknown",
    }
    return LocalServer([entry], {"/props": props})


def vllm(id: str = "/models/Qwen2.5-7B-Instruct/") -> LocalServer:
    """vLLM; without `--served-model-name` the id is what was given to `vllm serve`."""
    about = {"root": id, "parent": None, "max_model_len": 32768, "permission": []}
    return LocalServer([{"id": id, "object": "model", "created": 1, "owned_by": "vllm", **about}])


def lm_studio() -> LocalServer:
    """LM Studio with one model that answers, and the one for embeddings that it brings."""
    ids = ("qwen2.5-7b-instruct", "text-embedding-nomic-embed-text-v1.5")
    about = {
        "object": "model",
        "type": "llm",
        "state": "loaded",
        "max_context_length": 131072,
        "loaded_context_length": 4096,
        "capabilities": ["tool_use"],
    }
    other = {"id": ids[1], "object": "model", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048}
    data = [{"id": ids[0], **about}, other]
    listed = [{"id": id, "object": "model", "owned_by": "organization_owner"} for id in ids]
    return LocalServer(listed, {"/api/v0/models": {"object": "list", "data": data}})


def ollama() -> LocalServer:
    """Ollama, of whose list the interface of OpenAI has names alone."""
    return LocalServer([{"id": "llama3.2:latest", "object": "model", "created": 1, "owned_by": "library"}])


def tgi() -> LocalServer:
    """Text Generation Inference."""
    id = "HuggingFaceTB/SmolLM2-1.7B-Instruct"
    info = {"model_id": id, "max_input_tokens": 4095, "max_total_tokens": 4096, "router": "text-generation-router"}
    return LocalServer([{"id": id, "object": "model", "created": 0, "owned_by": id}], {"/info": info})
