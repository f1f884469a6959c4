"""Compiled from skills.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])


@koi.skill('Texts')
def Texts():
    """Works with texts,
  one after the other."""

    def counted() -> float:
        nonlocal calls
        calls = calls + 1
        return calls

    @koi.export
    @koi.needs('read')
    def join(parts: list[str], last: str='end') -> str:
        koi.require_function('read', '`Texts.join`')
        if last is koi.undefined:
            last = 'end'
        counted()
        return koi.invoke([*koi.iterate(parts), last], 'join', separator)

    @koi.export
    @koi.needs('read')
    async def shout(text: str, times: float=koi.undefined) -> str:
        koi.require_function('read', '`Texts.shout`')
        upper = koi.invoke(text, 'toUpperCase')
        return koi.add(koi.invoke(upper, 'repeat', koi.coalesce(times, 1)), first)

    @koi.export
    @koi.needs('registry:write')
    @koi.with_types(
        parameters={
            'options': {
                'type': 'object',
                'properties': {'name': {'type': 'string'}, 'size': {'type': 'integer'}},
                'required': ['name'],
            },
        },
    )
    def describe(options: dict[str, koi.Any], *more: koi.Any) -> koi.Any | None:
        koi.require_function('registry:write', '`Texts.describe`')
        more = list(more)
        return {**koi.spread(options), 'more': more} if koi.truth(koi.get(more, 'length')) else None

    separator = ', '
    parts_2 = koi.open_object({'words': koi.regex('\\w+', 'g'), 'marks': ['!']})
    words = koi.get(parts_2, 'words')
    first = koi.unpack(koi.get(parts_2, 'marks'), 1)[0]
    calls = 0
    return {'join': join, 'shout': shout, 'describe': describe}


join = Texts['join']
shout = Texts['shout']
describe = Texts['describe']


class Speaker(koi.Agent, koi_name='Speaker', role=lambda: Worker, skills=lambda: [Texts]):
    @koi.on('speak')
    async def speak(this, args):
        koi.invoke(
            koi.console,
            'log',
            await koi.settle(koi.apply(shout, koi.call(join, ['a', 'b']))),
        )
        return await koi.settle(koi.apply_member(this, 'callSkill', 'Texts', 'shout', 'hey'))
