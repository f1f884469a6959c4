"""Compiled from kinds.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])


class Kinds(koi.Agent, koi_name='Kinds', role=lambda: Worker):
    @koi.on('numbers')
    async def numbers(this, args):
        total = 0
        product = 1
        share = 0
        for i in koi.count(0, '<', 10):
            total = koi.remainder(total + i * 3, 1000)
            product = koi.multiply(product, i)
            share = share / 2 + total
            if i - 5 > 2:
                total = total - 7
        middle = koi.Math['floor'](koi.number((total + 1) / 2))
        unknown = 1
        unknown = koi.add(unknown, koi.get(args, 'n'))
        return [
            koi.number(total),
            product,
            koi.number(share),
            middle,
            unknown,
            koi.negate(koi.number(total)),
            ((total := ((value := koi.number(total)) + 1)), value)[1],
        ]

    @koi.on('texts')
    async def texts(this, args):
        text = koi.invoke(koi.template(koi.get(args, 'name'), ': '), 'trim')
        found = ''
        late = 'text'
        for i in koi.count(0, '<', koi.length(text)):
            if text[i] != 'a' and (
                text[at] if (at := (i + 1)) < koi.length(text) else koi.undefined
            ) == koi.undefined:
                found = found + text[i]
            if i == 2:
                late = 2
        return f'{found} {late}' if koi.length(found) > 2 else koi.add(late, found)

    @koi.on('collections')
    async def collections(this, args):
        list_ = []
        names = koi.new(koi.Map)
        list_.append(1)
        for at in koi.count(koi.length(list_) - 1, '>=', 0, -1):
            names.set(at, list_[at] if 0 <= at < koi.length(list_) else koi.undefined)

        def changed():
            nonlocal count
            count = 'later'
            return koi.undefined

        count = 0
        changed()
        if koi.length(list_) and (not count):
            return (
                koi.length(names)
                if koi.nullish(
                    (value := names.get(list_[0] if 0 < koi.length(list_) else koi.undefined)),
                )
                else value
            )
        return koi.Math['max'](count, 2)
