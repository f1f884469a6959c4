"""Which of OpenAI's models are to be had through its Responses interface, as data.

A name stands here when the vendor's pages or its answers to requests say so; a model that both interfaces have loses
nothing by standing here.
"""

# Those that the chat interface does not have.
ONLY_THERE = (
    "o[0-9]-pro o[0-9]*-deep-research gpt-5*-pro gpt-5*-codex* codex-mini-latest computer-use-preview gpt-daybreak-*"
    " gpt-rosalind-*"
)
# Those that the chat interface gives no tools while they think.
TOOLS_THERE = "gpt-5.[4-9]* gpt-[6-9]* gpt-[0-9][0-9]*"
RESPONSES_NAMES = f"{ONLY_THERE} {TOOLS_THERE}"
