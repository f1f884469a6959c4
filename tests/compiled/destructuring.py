"""Compiled from destructuring.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])


class Patterns(koi.Agent, koi_name='Patterns', role=lambda: Worker):
    @koi.on('declarations')
    async def declarations(this, args):
        parts = koi.open_object(args)
        a = koi.get(parts, 'a')
        renamed = koi.get(parts, 'b')
        c = 3 if (part := koi.get(parts, 'c')) is koi.undefined else part
        others = koi.without(parts, ['a', 'b', 'c'])
        parts_2 = koi.unpack(koi.get(args, 'list'), 4, True)
        first = parts_2[0]
        second = parts_2[1]
        third = 'x' if (part_2 := parts_2[2]) is koi.undefined else part_2
        rest = parts_2[3]
        parts_3 = koi.open_object(args)
        parts_4 = koi.open_object(koi.get(parts_3, 'inner'))
        deep = koi.get(parts_4, 'deep')
        head = koi.unpack(koi.get(parts_4, 'list'), 1)[0]
        return [a, renamed, c, others, first, second, third, rest, deep, head]

    @koi.on('assignments')
    async def assignments(this, argument):
        parts = koi.open_object(argument)
        left = koi.get(parts, 'left')
        right = koi.get(parts, 'right')
        left, right = koi.unpack([right, left], 2)
        parts_2 = koi.open_object({'left': left, 'right': right})
        left = koi.get(parts_2, 'left')
        koi.put(this.state, 'right', koi.get(parts_2, 'right'))
        return {'left': left, 'right': right}

    @koi.on('loops')
    async def loops(this, args):
        for item in koi.iterate(koi.invoke(koi.Object, 'entries', args)):
            key, value = koi.unpack(item, 2)
            koi.invoke(koi.console, 'log', key, value)

        def anonymous(argument):
            x, y = koi.unpack(argument, 2)
            return koi.add(x, y)

        def anonymous_2(argument_2):
            parts = koi.open_object(argument_2)
            z = 1 if (part := koi.get(parts, 'z')) is koi.undefined else part
            return z

        return koi.invoke(koi.invoke(koi.get(args, 'pairs'), 'map', anonymous), 'map', anonymous_2)
