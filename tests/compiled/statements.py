"""Compiled from statements.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])


class Statements(koi.Agent, koi_name='Statements', role=lambda: Worker):
    @koi.on('branches')
    async def branches(this, args):
        if koi.greater(koi.get(args, 'n'), 2):
            return 'many'
        elif koi.truth(koi.get(args, 'n')):
            return 'few'
        else:
            koi.invoke(koi.console, 'log', 'none')
        return koi.undefined

    @koi.on('loops')
    async def loops(this, args):
        sum = 0
        for item in koi.iterate(koi.get(args, 'items')):
            if koi.less(item, 0):
                continue
            if koi.greater(item, 100):
                break
            sum = koi.add(sum, item)
        for i in koi.count(0, '<', 10):
            if i % 2 == 0:
                continue
            sum = koi.add(sum, i)
        for key in koi.keys(args):
            sum = koi.add(sum, koi.length(key))
        while koi.greater(sum, 10):
            sum = koi.subtract(sum, 10)
        return sum

    @koi.on('exceptions')
    async def exceptions(this, args):
        try:
            raise koi.thrown(koi.new(koi.Error, 'it broke'))
        except Exception as exception:
            error = koi.caught(exception)
            koi.invoke(koi.console, 'log', koi.get(error, 'message'))
        finally:
            koi.invoke(koi.console, 'log', 'done')
        try:
            koi.invoke(koi.JSON, 'parse', koi.get(args, 'text'))
        except Exception as exception_2:
            koi.caught(exception_2)
            return None
        return koi.undefined

    @koi.on('shadows')
    async def shadows(this, args):
        name = 'outer'
        if koi.truth(koi.get(args, 'inner')):
            name_2 = 'inner'
            koi.invoke(koi.console, 'log', name_2)
        class__ = 1
        list_ = [class__]
        pass_ = koi.undefined
        return name
