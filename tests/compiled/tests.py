"""Compiled from tests.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])
Sums = koi.Team('Sums', lambda: {'adder': Adder})


class Adder(koi.Agent, koi_name='Adder', role=lambda: Worker):
    @koi.on(
        'add',
        schema={
            'type': 'object',
            'properties': {'a': {'type': 'number'}, 'b': {'type': 'number'}},
            'required': ['a', 'b'],
        },
    )
    async def add(this, args):
        return koi.add(koi.get(args, 'a'), koi.get(args, 'b'))

    @koi.on('count')
    async def count(this, args=koi.undefined):
        if args is koi.undefined:
            args = {'by': 1}
        return koi.get(args, 'by')

    @koi.on('fail')
    async def fail(this, args):
        raise koi.thrown(koi.new(koi.RangeError, 'too much'))


def koi_tests():
    async def test_1():
        koi.given('person', ['Ada', 3])
        koi.given('model', {'Ask': ['yes']})
        sum = await koi.settle(koi.run(Adder, 'add', {'a': 1, 'b': 2}))
        koi.compare('==', sum, 3)
        koi.compare('!==', sum, 4)
        koi.expect(koi.greater(sum, 2) and koi.same(koi.get(koi.output(), 'length'), 0))
        koi.expect(
            await koi.send(None, koi.query(koi.live(Sums), 'add', select='any'), {'a': 1, 'b': 2}),
        )
        koi.expect(await koi.settle(koi.run(Adder, 'count', koi.undefined)))
        return koi.undefined

    async def test_2():
        all = await koi.settle(
            koi.apply_member(
                koi.Promise,
                'all',
                koi.invoke(
                    [1, 2],
                    'map',
                    lambda a: koi.call(koi.run, Adder, 'add', {'a': a, 'b': a}),
                ),
            ),
        )

        def anonymous(each):
            koi.compare('<', each, 5)
            return koi.undefined

        koi.invoke(all, 'forEach', anonymous)
        try:
            await koi.settle(koi.run(Adder, 'fail', {}))
        except Exception as failure:
            koi.expect_failure('too much', failure)
        else:
            koi.expect_failure('too much')
        try:
            await koi.settle(koi.invoke(koi.JSON, 'parse', '{'))
        except Exception as failure_2:
            koi.expect_failure('JSON', failure_2)
        else:
            koi.expect_failure('JSON')

        def check(text):
            try:
                koi.invoke(koi.JSON, 'parse', text)
            except Exception as failure_3:
                koi.expect_failure('JSON', failure_3)
            else:
                koi.expect_failure('JSON')
            return koi.undefined

        check('[')
        return koi.undefined

    async def test_3():
        koi.compare('==', await koi.settle(koi.run(Adder, 'count', [*koi.iterate([1]), 2])), None)
        return koi.undefined

    return {'adds': test_1, 'waits, and fails': test_2, 'sends a list': test_3}
