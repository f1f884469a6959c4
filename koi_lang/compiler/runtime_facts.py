"""Names of actions, providers and options for the compiler, made from them by `python -m docs.generate`.

An optional field has `?` behind its name; the kind of its value follows where it takes only one.
"""

ACTION_FIELDS = {
    "print": "message",
    "prompt_user": "question:string options?",
    "prompt_form": "question:string form:object",
    "return": "data?",
    "call_llm": "data instruction:string",
    "format": "data instruction:string",
    "update_state": "updates:object",
    "send_message": "event:string data role?",
    "await_call": "call seconds?",
    "cancel_call": "call:string",
    "list_calls": "",
    "call_skill": "skill:string function?:string input?",
    "ask_parent": "question:string",
    "action_history": "count?:number",
    "registry_set": "key:string value",
    "registry_get": "key:string",
    "registry_delete": "key:string",
    "registry_keys": "prefix?:string",
    "registry_search": "query:object",
    "if": "condition then:array otherwise?",
    "while": "condition actions:array max_iterations?:number",
    "repeat": "count:number actions:array",
    "for_each": "of:array as:string actions:array",
    "shell": "command:string description:string cwd? background?:boolean timeout_ms?:number until?:string",
    "stop_command": "command:number",
    "list_commands": "",
    "call_mcp": "mcp:string tool:string input?",
    "get_mcp_tool_info": "mcp:string tool:string",
    "mcp_read_resource": "mcp:string uri?",
    "mcp_get_prompt": "mcp:string prompt? input?",
    "read_output": "id:number from?:number count?:number",
    "read_skill": "name:string file?:string offset?:number",
    "propose_plan": "steps:array why?:string",
    "finish_step": "step:number",
}
PROVIDERS = (
    "openai",
    "anthropic",
    "gemini",
    "groq",
    "deepseek",
    "moonshot",
    "xai",
    "qwen",
    "together",
    "openrouter",
    "mistral",
    "bedrock",
    "ollama",
    "local",
    "rehearsal",
    "scripted",
)
MAKERS = (
    "deepseek-ai",
    "mistralai",
    "moonshotai",
    "x-ai",
)
WITHOUT_SEED = (
    "anthropic",
    "gemini",
    "deepseek",
    "moonshot",
    "bedrock",
)
CALL_OPTIONS = (
    "as",
    "returns",
    "model",
    "effort",
)
