"""Compiled from expressions.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])


class Expressions(
    koi.Agent,
    koi_name='Expressions',
    role=lambda: Worker,
    state=lambda: {'total': 0},
    state_types={'total': {'type': 'number'}},
):
    @koi.on('arithmetic')
    async def arithmetic(this, args):
        n = koi.add(koi.multiply(koi.get(args, 'n'), 2), 1)
        power = koi.remainder(koi.power(koi.negate(n), 2), 7)
        joined = koi.add('a', n) + f'b {koi.text(n)} c'
        return [
            power,
            joined,
            koi.number(n / 2 - 1),
            koi.negate(koi.get(args, 'n')),
            koi.number('3'),
        ]

    @koi.on('logic')
    async def logic(this, args):
        chosen = koi.either(
            value
            if koi.truth((value := koi.get(args, 'name')))
            else koi.both(koi.get(args, 'nick'), 'nick'),
            'nobody',
        )
        size = koi.coalesce(koi.get(args, 'size'), 10)
        if not koi.truth(koi.get(args, 'ready')) and (
            koi.greater(size, 3) or koi.same(chosen, 'x')
        ):
            return chosen if not koi.equal(chosen, None) else size
        return koi.type_of(koi.get(args, 'flag')) == 'boolean' and koi.has('name', args)

    @koi.on('members')
    async def members(this, args):
        first = koi.get(koi.get(args, 'list'), 0)
        deep = (
            koi.undefined
            if koi.nullish(args) or koi.nullish((value := koi.get(args, 'a'))) or koi.nullish(
                (method := koi.get((value_2 := koi.get(value, 'b')), 'c')),
            )
            else koi.invoke_found(value_2, method, 1)
        )
        koi.put(
            this.state,
            'total',
            koi.add(koi.get(this.state, 'total'), koi.get(koi.get(args, 'list'), 'length')),
        )
        koi.put_last(
            koi.multiply(
                koi.get((object := koi.get(args, 'list')), (key := koi.get(args, 'index'))),
                2,
            ),
            object,
            key,
        )
        koi.remove(args, 'a')
        koi.put(args, 'count', koi.increment(koi.get(args, 'count')))
        return {
            'first': first,
            'deep': deep,
            koi.text(first): 1,
            'with-dash': koi.regex('[a-z]+', 'gi'),
            **koi.spread(koi.get(args, 'more')),
        }

    @koi.on('calls')
    async def calls(this, args):
        fresh = koi.new(koi.Map, [[1, 2]])
        all = await koi.settle(
            koi.apply_member(
                koi.Promise,
                'all',
                [
                    koi.invoke(args, 'one'),
                    koi.invoke(args, 'two', 1, *koi.iterate(koi.get(args, 'rest'))),
                ],
            ),
        )
        top = koi.invoke(koi.Math, 'max', *koi.iterate(all), 3)
        koi.invoke(koi.console, 'log', fresh, top, koi.call(koi.parseInt, '7', 10))
        return koi.instance_of(fresh, koi.Map)


async def main():
    await koi.run(Expressions, 'arithmetic', {'n': 20})
