"""Compiled from jobs.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])


class Reporter(koi.Agent, koi_name='Reporter', role=lambda: Worker):
    @koi.on(
        'daily',
        schema={
            'type': 'object',
            'properties': {
                'top': {'type': 'number'},
                'tags': {'type': 'array', 'items': {'type': 'string'}},
            },
            'required': ['top'],
        },
    )
    async def daily(this, args):
        koi.invoke(koi.console, 'log', koi.get(args, 'top'))
        return koi.undefined

    @koi.on(
        'issue',
        schema={
            'type': 'object',
            'properties': {'action': {'type': 'string'}},
            'required': ['action'],
        },
    )
    async def issue(this, event):
        every = 1
        when = every + 1
        koi.invoke(koi.console, 'log', koi.get(event, 'action'), when)
        return koi.undefined


async def main():
    await koi.run(Reporter, 'daily', {'top': 1})


def koi_jobs():
    return [
        koi.Job(
            'Reporter',
            'daily',
            {'top': -3, 'tags': ['a']},
            'every',
            'weekdays 09:00 Europe/Berlin',
            name='Reporter.daily',
            line=10,
        ),
        koi.Job(
            'Reporter',
            'daily',
            {'top': 3},
            'every',
            '15m',
            name='often',
            missed='never',
            overlap='wait',
            jitter_s=30.0,
            line=11,
        ),
        koi.Job(
            'Reporter',
            'issue',
            {},
            'when',
            'hook /github',
            name='Reporter.issue',
            overlap='together',
            line=12,
        ),
    ]
