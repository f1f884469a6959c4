"""Compiled from imports.koi."""

import math
from os import path as paths
import koi_lang
from koi_lang.runtime import prelude as koi

words = koi_lang.load('./parts/words.koi', beside=__file__)
deeper = koi_lang.load('./parts/deeper.koi', beside=__file__)
stats = koi.python_file('./parts/stats.py', __file__)
houseRules = koi.Prompt(
    'houseRules',
    lambda: ['Rules of {{agentName}}:\nbe nice.'],
    lambda scope: [koi.fill('Rules of ', scope.agent_name, ':\nbe nice.', names=['agentName'])],
)
notes = koi.Prompt('notes', lambda: ['# Notes\n\nRead slowly.'])
Worker = koi.Role('Worker', ['execute', 'delegate'])


class Reader(
    koi.Agent,
    koi_name='Reader',
    role=lambda: Worker,
    teams=lambda: [words.Readers],
    skills=lambda: [words.Words],
):
    @koi.on('read')
    async def read(this, args):
        koi.invoke(
            koi.console,
            'log',
            koi.invoke(stats, 'mean', [1, 2]),
            koi.get(math, 'pi'),
            koi.invoke(paths, 'basename', 'a/b'),
            houseRules.text,
        )
        return koi.add(
            koi.call(words.first, koi.get(args, 'text')),
            await koi.send(this, koi.query(koi.peers(this), 'lookup', select='any'), args),
        )

    @koi.on('ask', playbook=True)
    async def ask(this, args):
        return await koi.playbook(this, 'ask', args, lambda scope: [notes, deeper.Tone])
