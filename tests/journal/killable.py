"""Programs of many kinds that leave a line for each of their effects, and are to be killed anywhere."""

from __future__ import annotations

TOOL = """
import asyncio, datetime, decimal, time
from dataclasses import dataclass

def note(name):
    time.sleep(0.01)
    with open("effects", "a") as file:
        file.write(f"{name}\\n")
    return name

async def slow(name, ms):
    await asyncio.sleep(ms / 1000)
    return note(name)

async def fails(name):
    await slow(name, 5)
    raise ValueError(name)

def pair(n): return (note(f"pair {n}"), {1: b"x" * n})
def numbers(n):
    note(f"numbers {n}")
    return {n, n + 1}
def day(n):
    note(f"day {n}")
    return datetime.date(2026, 1, 1) + datetime.timedelta(n)
def price(n):
    note(f"price {n}")
    return decimal.Decimal(n) / 8
def told(value): return repr(value)

@dataclass
class Box:
    total: int = 0
    def add(self, n):
        time.sleep(0.01)
        self.total += n
        return self.total

def box(): return Box()
"""
HEAD = 'import tool from "./tool.py"\nrole R { can execute, can delegate, can registry }\n'
TEAM = """
team T { one: One, two: Two }
agent One : R { state { seen = [] }
  on work(x: Json) { this.state.seen.push(await tool.slow(`one ${x.n}`, 10)); return this.state.seen.length }
  on read() { return (await this.callAction("inbox", {})).messages.map(each => `${each.from} ${each.id} ${each.text}`) }
}
agent Two : R { uses team T
  on work(x: Json) { return await send peers.event("deep").any()(x) }
  on deep(x: Json) { const a = await tool.slow(`two ${x.n}`, 15); return a + tool.note(`deep ${x.n}`) }
}
"""
CODE = {
    "loops": """
        let sum = 0
        for (let n = 0; n < 15; n++) { sum += tool.note(`n ${n}`).length; console.log(n, sum, Math.random() < 2) }
        console.log(sum)
    """,
    "races": """
        for (let n = 0; n < 4; n++) {
          const winner = await Promise.race([300, 1, 600].map(ms => tool.slow(`race ${n} ${ms}`, ms)))
          console.log(winner)
        }
        console.log(await tool.slow("last", 80))
    """,
    "together": """
        const one = async n => (await tool.slow(`a ${n}`, n * 9)) + tool.note(`b ${n}`)
        const all = await Promise.all([1, 2, 3, 4, 5].map(one))
        console.log(all)
        const ends = await Promise.allSettled([tool.fails("c"), tool.slow("d", 3)])
        console.log(ends.map(each => each.status).join())
        try { await tool.fails("e") } catch (e) { console.log(e.message, tool.note("caught")) }
    """,
    "values": """
        for (let n = 1; n < 5; n++) {
          console.log(tool.told(tool.pair(n)), tool.told(tool.numbers(n)))
          console.log(tool.told(tool.day(n)), tool.told(tool.price(n)))
        }
    """,
    "objects": """
        const box = tool.box()
        for (let n = 1; n < 12; n++) { console.log(box.add(n)) }
        console.log(await tool.slow("between", 10), box.total)
    """,
    "registry": """
        for (let n = 0; n < 10; n++) {
          await registry.set(`item ${n}`, { n })
          const moved = await registry.get(`item ${n}`)
          await registry.set(`moved ${n}`, moved)
          if (await registry.delete(`item ${n}`)) tool.note(`mail ${n}`)
          console.log("moved", n)
        }
        console.log(await registry.keys(), (await registry.stats()).count, await registry.clear())
    """,
    "fetch": """
        for (let n = 0; n < 8; n++) {
          const answer = await fetch("http://127.0.0.1:PORT/", { method: "POST", body: `n=${n}` })
          console.log(answer.status, await answer.text())
        }
    """,
    "shell": """
        for (let n = 0; n < 6; n++) {
          const command = `echo line ${n} >> effects; echo said ${n}`
          const done = await callAction("shell", { command, description: "d" })
          console.log(done.exitCode, done.stdout.trim())
        }
    """,
    "timers": """
        let n = 0
        await new Promise(done => {
          const timer = setInterval(async () => {
            n += 1
            if (n === 4) clearInterval(timer)
            const mine = n
            await tool.slow(`tick ${mine}`, 2)
            console.log("tick", mine)
            if (mine === 4) done()
          }, 25)
        })
        const late = new Promise(done => setTimeout(() => done("late"), 90))
        console.log(await Promise.race([late, tool.slow("early", 3)]), Date.now() > 0)
    """,
    "sends": """
        const all = await Promise.all([1, 2, 3].map(async n => await send peers.event("work").all()({ n })))
        console.log(all.length, await send peers.event("work").role(R).any()({ n: 4 }))
        console.log(await Two.handle("work", { n: 5 }), One.state.seen.length)
    """,
    "messages": """
        for (let n = 0; n < 6; n++) {
          await this.callAction("tell", { member: "one", text: `m ${n}` })
          await tool.slow(`n ${n}`, 5)
          if (n % 2) console.log(await One.read())
        }
        await this.callAction("broadcast", { text: "all" })
        console.log(await One.read(), await One.read())
    """,
    "starts": """
        const begun = [1, 2, 3].map(n => start peers.event("work").all()({ n }))
        const dropped = start peers.event("work").role(R).any()({ n: 4 })
        tool.note("beside")
        console.log(dropped.cancel(), dropped.cancel(), (await begun[1]).length)
        for (const each of begun) console.log((await each).length, each.id, each.state)
        await dropped.catch(error => console.log(error.message))
    """,
}
DELEGATE = {"actionType": "delegate"}
MEMBERS = [{**DELEGATE, "intent": f"{name}::work", "data": {"n": n}} for n in (1, 2, 3) for name in ("one", "two")]
ANSWERS: dict[str, list[object]] = {
    "delegates": [
        {"batch": [{"parallel": MEMBERS}, {"intent": "print", "message": "first"}]},
        {
            "batch": [
                {**DELEGATE, "id": "last", "intent": "two::work", "data": {"n": 4}},
                {"intent": "print", "message": "got ${last.output}"},
                {"intent": "return", "data": "${last.output}"},
            ]
        },
    ],
    "background": [
        {"batch": [*({**member, "background": True} for member in MEMBERS), {"intent": "print", "message": "begun"}]},
        {"intent": "shell", "command": "sleep 0.1; echo shell >> effects", "description": "d"},
        {"intent": "await_call", "call": [f"c{n}" for n in range(1, 7)], "id": "all"},
        {
            "batch": [
                {"intent": "print", "message": "${[...all.output.calls.map(each => each.result)].sort().join(' ')}"},
                {"intent": "return", "data": "done"},
            ]
        },
    ],
    "while": [
        {
            "batch": [
                {
                    "intent": "while",
                    "condition": "${state.n} < 6",
                    "actions": [
                        {"intent": "update_state", "updates": {"n": "${state.n + 1}"}},
                        {**DELEGATE, "id": "w", "intent": "two::work", "data": {"n": "${state.n}"}},
                        {"intent": "shell", "command": "echo shell >> effects", "description": "d"},
                        {"intent": "print", "message": "round ${state.n} ${w.output}"},
                    ],
                },
                {"intent": "registry_set", "key": "k", "value": "${state.n}"},
            ]
        },
        {"intent": "return", "data": {"n": "${state.n}"}},
    ],
}


def _program(body: str) -> str:
    agent = f"agent Main : R {{ uses team T\n  state {{ n = 0 }}\n  on go() {{ {body} }}\n}}\n"
    return f"{HEAD}{TEAM}{agent}run Main.go()\n"


PROGRAMS = {
    **{name: _program(body) for name, body in CODE.items()},
    "delegates": _program('playbook "Lead the work."'),
    "background": _program('playbook "Have it worked on in the background."'),
    "while": _program('playbook "Do it six times."'),
}
