"""`koi debug FILE`: breakpoints, steps and variables on the lines of a program."""

from __future__ import annotations

import time

from tests.dap.client import debugging
from tests.projects import Project

COUNTING = """
    // Adds up.
    role Worker { can execute }

    agent Counter : Worker {
      state { sum: number = 0 }
      on count(args: Json) {
        let total = 0
        for (const n of args.numbers) {
          // Twice each.
          total += double(n)
        }
        this.state.sum = total
        console.log("total", total)
        return total
      }
    }

    skill Parts {
      export function double(n: number): number {
        const result = n * 2
        return result
      }
    }

    run Counter.count({ numbers: [3, 4] })
    """


def test_a_breakpoint_stops_with_a_stack_of_the_program(project: Project) -> None:
    """A line of a skill's function stops there; only calls of the program stand on the stack, with their variables."""
    path = project.write("count.koi", COUNTING)

    with debugging(project, "count.koi") as client:
        client.launch({path: [21]})
        assert client.stop() == "breakpoint 21 double"
        assert [(frame["name"], frame["line"]) for frame in client.stack()] == [
            ("double", 21), ("Counter.count", 10), ("run", 25),
        ]  # fmt: skip
        assert client.variables() == {"n": "3", "result": "6"}
        assert client.variables(1)["total"] == "0"
        assert client.go() == "breakpoint 21 double"
        assert client.evaluate("n + result") == "12"
        assert client.go() == "terminated"
        assert client.output() == "total 14\n"


def test_time_limits_do_not_count_stops(project: Project) -> None:
    """A handler that is looked at for longer than it may take goes on, also where it waits afterwards."""
    path = project.write(
        "timed.koi",
        """
        role Worker { can execute }
        agent Timed : Worker {
          budget { time: 2s }
          on start(args: Json) {
            const n = 1
            await new Promise(done => setTimeout(done, 20))
            console.log(n)
          }
        }
        run Timed.start({})
        """,
    )

    with debugging(project, "timed.koi") as client:
        client.launch({path: [5]})
        assert client.stop() == "breakpoint 5 Timed.start"
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            assert client.evaluate("1 + 1") == "2"
            time.sleep(0.1)
        assert client.go() == "terminated"
        assert client.output() == "1\n"
