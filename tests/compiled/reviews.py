"""Compiled from reviews.koi."""

from koi_lang.runtime import prelude as koi

Finding = koi.TypedDict(
    'Finding',
    {
        'line': int,
        'severity': "koi.Literal['blocker'] | koi.Literal['note']",
        'class': koi.NotRequired[str],
        'inner': koi.NotRequired['list[Finding]'],
    },
)
Worker = koi.Role('Worker', ['execute'])


@koi.skill('Reviews')
def Reviews():
    @koi.export
    @koi.with_types(
        parameters={
            'findings': {'type': 'array', 'items': {'$ref': '#/$defs/Finding'}},
            'level': {'anyOf': [{'const': 'blocker'}, {'const': 'note'}]},
        },
        result={'anyOf': [{'$ref': '#/$defs/Finding'}, {'type': 'null'}]},
        declared={
            'Finding': {
                'type': 'object',
                'properties': {
                    'line': {'type': 'integer'},
                    'severity': {'$ref': '#/$defs/Severity'},
                    'class': {'type': 'string'},
                    'inner': {'type': 'array', 'items': {'$ref': '#/$defs/Finding'}},
                },
                'required': ['line', 'severity'],
                'description': 'What a review found.',
            },
            'Severity': {'anyOf': [{'const': 'blocker'}, {'const': 'note'}]},
        },
    )
    def worst(
        findings: 'list[Finding]',
        level: "koi.Literal['blocker'] | koi.Literal['note']"='note',
    ) -> 'Finding | None':
        if level is koi.undefined:
            level = 'note'
        return koi.coalesce(koi.get(findings, 0), None)

    return {'worst': worst}


worst = Reviews['worst']
Reviewer_review_result = koi.ResultType(
    'Reviewer.review',
    {
        'type': 'array',
        'items': {'$ref': '#/$defs/Finding'},
        '$defs': {
            'Finding': {
                'type': 'object',
                'properties': {
                    'line': {'type': 'integer'},
                    'severity': {'$ref': '#/$defs/Severity'},
                    'class': {'type': 'string'},
                    'inner': {'type': 'array', 'items': {'$ref': '#/$defs/Finding'}},
                },
                'required': ['line', 'severity'],
                'description': 'What a review found.',
            },
            'Severity': {'anyOf': [{'const': 'blocker'}, {'const': 'note'}]},
        },
    },
)
Reviewer_other_result = koi.ResultType(
    'Reviewer.other',
    {
        'type': 'object',
        'properties': {
            'line': {'type': 'integer'},
            'severity': {'$ref': '#/$defs/Severity'},
            'class': {'type': 'string'},
            'inner': {'type': 'array', 'items': {'$ref': '#/$defs/Finding'}},
        },
        'required': ['line', 'severity'],
        'description': 'What a review found.',
        '$defs': {
            'Severity': {'anyOf': [{'const': 'blocker'}, {'const': 'note'}]},
            'Finding': {
                'type': 'object',
                'properties': {
                    'line': {'type': 'integer'},
                    'severity': {'$ref': '#/$defs/Severity'},
                    'class': {'type': 'string'},
                    'inner': {'type': 'array', 'items': {'$ref': '#/$defs/Finding'}},
                },
                'required': ['line', 'severity'],
                'description': 'What a review found.',
            },
        },
    },
)


class Reviewer(koi.Agent, koi_name='Reviewer', role=lambda: Worker):
    @koi.on(
        'review',
        schema={'type': 'object', 'properties': {'text': {'type': 'string'}}, 'required': ['text']},
        result=Reviewer_review_result,
    )
    async def review(this, args):
        if koi.truth(koi.get(args, 'text')):
            return Reviewer_review_result.check(await koi.settle(koi.apply_member(this, 'other')))
        return Reviewer_review_result.check([])

    @koi.on('other', result=Reviewer_other_result, private=True)
    async def other(this, args):
        return Reviewer_other_result.check({'line': 1, 'severity': 'note'})
