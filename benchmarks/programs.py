"""Sizes to Koi programs of that size, for the benchmarks to compile and run."""

from __future__ import annotations

HANDLERS_OF_AN_AGENT = 20

CODE_HANDLER = """\
  on step{number}(args: Json) {{
    const items = args.items ?? [1, 2, 3]
    let total = 0
    for (const item of items) {{
      if (item > 2 && total < 100) {{
        total += item * 2
      }} else {{
        total = total + {opened}args.extra[0]{closed}
      }}
    }}
    const names = items.map((item) => `item ${{item}}`).join(", ")
    console.log(`step {number}: ${{names}}`, total)
    const answer = await send peers.event("step{number}").any()({{ items, total: total - 1 }})
    return {{ name: "step {number}", answer: answer, ok: total !== 0 }}
  }}
"""
PLAYBOOK_HANDLER = '''\
  on step{number}(args: Json) {{
    playbook """
      Read the order ${{args.order}} and find out what is missing.
      Ask the customer for it, one question at a time.
      Return the completed order as {{ "order": ... }}.
    """
  }}
'''
SENDING = """\
role Worker {{ can execute, can delegate }}
agent Adder : Worker {{
  on add(args: Json) {{ return args.a + args.b }}
  on wait(args: Json) {{ await new Promise((resolve) => setTimeout(resolve, {wait_ms})) }}
}}
team Adders {{ adder: Adder }}
agent Sender : Worker {{
  uses team Adders
  on idle(args: Json) {{
    for (let i = 0; i < args.count; i++) {{ args.a + args.b }}
  }}
  on oneByOne(args: Json) {{
    for (let i = 0; i < args.count; i++) {{ await send peers.event("add").any()({{ a: i, b: 1 }}) }}
  }}
  on together(args: Json) {{
    const sends = Array.from({{ length: args.count }}, () => peers.event("wait").any().execute({{}}))
    await Promise.all(sends)
  }}
}}
"""
GREETING = """\
role Worker { can execute }
agent Adder : Worker {
  on add(args: Json) { console.log(args.a + args.b) }
}
run Adder.add({ a: 2, b: 3 })
"""
ASKING = """\
role Worker {{ can execute }}
agent Greeter : Worker {{
  llm default = {{ provider: "openai", model: "gpt-4o-mini", base_url: "{url}/v1" }}
  on greet(args: Json) {{ playbook "Greet the user." }}
}}
run Greeter.greet({{}})
"""
CHATTING = """\
role Worker { can execute }
agent Main : Worker {
  on chat(args: { message: string }) { playbook "Answer the person." }
}
"""
PLAYBOOKS = '''\
role Clerk { can execute }
role Worker { can execute, can delegate }
prompt Orders = """
  Look at the orders of today, one after the other, and print a line for each of them:
  its number, what is in it, and whether all of it is in stock.
  Let others do what takes long.
  Return { done: true }
"""
agent Helper : Worker {
  on work(args: { n: number }) { await new Promise(done => setTimeout(done, 20)) }
}
agent Asker : Worker {
  llm default = { provider: "openai", model: "gpt-4o-mini" }
  on ask(args: { n: number }) { playbook "Say what is next to {{args.n}}." }
}
team Helpers { worker = Helper, asker = Asker }
agent Lead : Worker {
  uses team Helpers
  on start() { playbook Orders }
}
agent Single : Clerk {
  on start() { playbook Orders budget { turns: 5000 } }
}
type Line = { number: int, item: string, inStock: boolean, note?: string }
agent Typed : Clerk {
  on start(): { done: boolean, lines?: Line[] } { playbook Orders budget { turns: 5000 } }
}
'''


def code_program(lines: int, parentheses: int = 1) -> str:
    """A program of about so many lines of code handlers; each has an expression in so many nested parentheses."""
    shape = CODE_HANDLER.replace("{opened}", "(" * parentheses).replace("{closed}", ")" * parentheses)
    return _agents(lines // CODE_HANDLER.count("\n"), shape)


def playbook_program(handlers: int) -> str:
    """A program of so many handlers that are playbooks."""
    return _agents(handlers, PLAYBOOK_HANDLER)


def sending_program(wait_s: float) -> str:
    """Agents of which one sends to the other; `Adder.wait` takes as long as told."""
    return SENDING.format(wait_ms=round(wait_s * 1000))


def asking_program(url: str) -> str:
    """A playbook for the model behind an address."""
    return ASKING.format(url=url)


def _agents(handlers: int, shape: str) -> str:
    """Agents of twenty handlers each and a team of all of them."""
    starts = range(0, handlers, HANDLERS_OF_AN_AGENT)
    agents = "".join(_agent(range(start, min(start + HANDLERS_OF_AN_AGENT, handlers)), shape) for start in starts)
    members = ", ".join(f"agent{start}: Agent{start}" for start in starts)
    return f"role Worker {{ can execute, can delegate }}\n{agents}team Everybody {{ {members} }}\n"


def _agent(numbers: range, shape: str) -> str:
    handlers = "".join(shape.format(number=number) for number in numbers)
    return f"agent Agent{numbers.start} : Worker {{\n  uses team Everybody\n{handlers}}}\n"
