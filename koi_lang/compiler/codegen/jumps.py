"""Jumps: `break` and `continue`, also through several loops, which Python can leave only one at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter, LoopFrame


def open_frame(kind: Literal["loop", "switch", "block"], e: Emitter) -> LoopFrame:
    """The frame of the statement that is being generated, which takes its labels."""
    frame = LoopFrame(kind, e.labels)
    e.labels = ()
    return frame


def run_once(body: list[ast.stmt], at: py.At) -> ast.While:
    """A loop of one turn, so that `break` leaves what is none in the program."""
    return ast.While(py.constant(True, at), [*body, ast.Break(**at)], [], **at)


def jump(node: n.Break | n.Continue, e: Emitter) -> list[ast.stmt]:
    """A jump; where it leaves several frames, a variable tells each of them to go on."""
    at, is_continue = e.at(node.span), isinstance(node, n.Continue)
    if node in e.dropped:
        return [ast.Pass(**at)]
    target = _target(node, e)
    replaced = [flag for depth, flags in e.finalizers if e.frames.index(target) < depth for flag in flags]
    forget = forget_jumps(replaced, at)
    if target is e.frames[-1]:
        return [*forget, *_arrive(target, is_continue, at)]
    flag = target.flags.get(is_continue) or e.fresh("skips" if is_continue else "leaves")
    target.flags[is_continue] = flag
    e.jumped.append(flag)
    for frame in e.frames[e.frames.index(target) + 1 :]:
        frame.exits[flag] = (target, is_continue)
    return [*forget, py.assign(flag, py.constant(True, at), at), ast.Break(**at)]


def forget_jumps(flags: Iterable[str], at: py.At) -> list[ast.stmt]:
    """Cancel jumps that something else has replaced."""
    return [py.assign(flag, py.constant(False, at), at) for flag in dict.fromkeys(flags)]


def _target(node: n.Break | n.Continue, e: Emitter) -> LoopFrame:
    """Where a jump ends; that there is such a frame has been checked."""
    if node.label is not None:
        return next(frame for frame in reversed(e.frames) if node.label in frame.labels)
    kinds = ("loop",) if isinstance(node, n.Continue) else ("loop", "switch")
    return next(frame for frame in reversed(e.frames) if frame.kind in kinds)


def _arrive(target: LoopFrame, is_continue: bool, at: py.At) -> list[ast.stmt]:
    return [*target.updates, ast.Continue(**at)] if is_continue else [ast.Break(**at)]


def leave(frame: LoopFrame, made: list[ast.stmt], e: Emitter, at: py.At) -> list[ast.stmt]:
    """The statements of a frame, with what jumps through it need before and behind them."""
    before, behind = list[ast.stmt](), list[ast.stmt]()
    for flag, (target, is_continue) in frame.exits.items():
        step: list[ast.stmt] = [ast.Break(**at)]
        if target is e.frames[-1]:
            before.append(py.assign(flag, py.constant(False, at), at))
            step = _arrive(target, is_continue, at)
        behind.append(ast.If(py.load(flag, at), step, [], **at))
    return [*before, *made, *behind]
