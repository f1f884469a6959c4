"""Compiled from prompts.koi."""

from koi_lang.runtime import prelude as koi

Worker = koi.Role('Worker', ['execute'])
Rules = koi.Prompt('Rules', lambda: ['Be brief.\nNever guess.'])
Greeting = koi.Prompt(
    'Greeting',
    lambda: ['Say hello to {{name}}.'],
    lambda scope, name: [koi.fill('Say hello to ', name, '.', names=['name'])],
    parameters=['name'],
)
Both = koi.Prompt('Both', lambda: [Rules, 'And smile.'])


async def compose_Plan(scope):
    lines = []
    lines.append(koi.fill('', await Rules.render(scope), names=['rules']))
    count = await koi.settle(koi.add(koi.peek(scope.state, 'count'), 1))
    if koi.greater(count, 3):
        lines.append(koi.fill('    Enough: ', count, ' times.', names=['count']))
    elif koi.truth(koi.peek(scope.args, 'more')):
        lines.append(koi.fill('    ', await Both.render(scope), names=['both']))
    else:
        lines.append(
            koi.fill(
                '    Ask ',
                koi.peek(koi.peek(scope.args, 'person'), 'name'),
                ' again.',
                names=['args.person.name'],
            ),
        )
    return lines


Plan = koi.Composed('Plan', lambda: [Rules, Both], compose_Plan)


class Host(
    koi.Agent,
    koi_name='Host',
    role=lambda: Worker,
    state=lambda: {'count': 0},
    state_types={'count': {'type': 'number'}},
):
    @koi.on('greet', playbook=True)
    async def greet(this, args):
        return await koi.playbook(
            this,
            'greet',
            args,
            lambda scope: [
                Rules,
                Greeting.render(scope, koi.peek(scope.args, 'name')),
                koi.fill(
                    'Answer in ',
                    koi.either(koi.peek(scope.args, 'language'), 'English'),
                    '.',
                    names=['args.language || "English"'],
                ),
            ],
        )

    @koi.on('plan', playbook=True)
    async def plan(this, args):
        return await koi.playbook(this, 'plan', args, lambda scope: [Plan])

    @koi.on('show')
    async def show(this, args):
        koi.invoke(koi.console, 'log', Rules.text, await koi.settle(koi.apply(Greeting, 'Ada')))
        return koi.undefined
