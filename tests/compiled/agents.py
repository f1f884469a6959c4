"""Compiled from agents.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute', 'delegate'])
Lead = koi.Role('Lead', ['delegate'])
files = koi.Mcp('files', lambda: {'command': 'files-server', 'args': ['--root', '.']})
Office = koi.Team(
    'Office',
    lambda: {'adder': Adder, 'writer': Writer, 'search': koi.tool(koi.Mcp('tools'), 'search')},
)


class Adder(
    koi.Agent,
    koi_name='Adder',
    role=lambda: Worker,
    exposed=True,
    state=lambda: {'total': 0, 'seen': [], 'last': None},
    state_types={'total': {'type': 'number'}, 'last': {'type': 'string'}},
):
    """Adds numbers."""

    @koi.on(
        'add',
        affordance='Adds two numbers.',
        schema={
            'type': 'object',
            'properties': {'a': {'type': 'number'}, 'b': {'type': 'number'}},
            'required': ['a'],
        },
    )
    async def add(this, numbers):
        koi.put(this.state, 'total', koi.add(koi.get(this.state, 'total'), koi.get(numbers, 'a')))
        return koi.get(this.state, 'total')

    @koi.on('reset', private=True)
    async def reset(this, args):
        koi.put(this.state, 'total', 0)
        return koi.undefined


class Writer(
    koi.Agent,
    koi_name='Writer',
    role=lambda: Worker,
    mcps=lambda: [files.only('read_*', 'prompt:greet'), koi.Mcp('tools')],
    llm={'default': lambda: {'provider': 'openai', 'model': 'gpt-4', 'temperature': 0.2}},
    amnesia=True,
    resilience={
        'write': lambda: {'retry_max_attempts': 3, 'retry_delay': 100, 'backoff': 'exponential'},
    },
):
    @koi.on('write', playbook=True, acts=False)
    async def write(this, args):
        return await koi.playbook(
            this,
            'write',
            args,
            lambda scope: [
                koi.fill(
                    'Write a poem about ',
                    koi.peek(scope.args, 'topic'),
                    '.\n    Mind the total of ',
                    koi.coalesce(koi.peek(scope.state, 'total'), 0),
                    '.',
                    names=['args.topic', 'state.total ?? 0'],
                ),
            ],
        )


class Boss(koi.Agent, koi_name='Boss', role=lambda: Lead, teams=lambda: [Office]):
    @koi.on('start')
    async def start(this, args):
        sum = await koi.send(
            this,
            koi.query(koi.peers(this), 'add', role=Worker, select='any'),
            {'a': 1, 'b': 2},
            timeout_s=5.0,
        )
        all = await koi.send(
            this,
            koi.query(koi.peers(this, koi.live(Office)), 'add', select='all'),
            args,
        )
        told = await koi.settle(
            koi.apply_member(
                koi.invoke(koi.invoke(koi.peers(this, koi.live(Office)), 'event', 'write'), 'any'),
                'execute',
                {'topic': 'ants'},
            ),
        )
        await koi.settle(koi.apply_member(koi.registry(), 'set', 'sum', sum))
        return [
            sum,
            all,
            told,
            await koi.settle(koi.apply(this.call_action, 'print', {'message': this.name})),
        ]


async def main():
    await koi.run(Boss, 'start', {'a': 3})
    await koi.run(Adder, 'reset', {})
