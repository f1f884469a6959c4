"""Compiled from closures.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])


class Closures(koi.Agent, koi_name='Closures', role=lambda: Worker):
    @koi.on('arrows')
    async def arrows(this, args):
        def double(n):
            return koi.multiply(n, 2)

        def point(x, y=1, *rest):
            if y is koi.undefined:
                y = 1
            rest = list(rest)
            return {'x': x, 'y': y, 'rest': rest}

        async def pause(ms):
            await koi.settle(
                koi.new(koi.Promise, lambda resolve: koi.call(koi.setTimeout, resolve, ms)),
            )
            return ms

        await koi.settle(koi.apply(pause, 1))
        return koi.invoke(
            koi.invoke(koi.invoke([1, 2], 'map', double), 'filter', lambda n: koi.greater(n, 2)),
            'map',
            lambda n, index: koi.call(point, n, index),
        )

    @koi.on('counters')
    async def counters(this, args):
        count = 0

        def increase():
            nonlocal count
            count = count + 1
            return koi.undefined

        increase()
        made = []
        i = 0
        while i < 3:
            made.append(lambda *, i=i: i)
            i = i + 1
        for word in koi.iterate(koi.get(args, 'words')):
            times = koi.Box()
            times.value = 0

            def anonymous(*, times=times, word=word):
                times.value = koi.add(times.value, 1)
                return koi.add(word, times.value)

            made.append(anonymous)
        return made

    @koi.on('recursion')
    async def recursion(this, args):
        def factorial(n):
            return 1 if koi.less(n, 2) else koi.multiply(n, factorial(koi.subtract(n, 1)))

        return factorial(koi.get(args, 'n'))
