"""`answer`: a text that asks for an action is told so, one that only says how to speak is left alone."""

from __future__ import annotations

import json

from tests.support import diagnostics_of_text

PROGRAM = "role R { can rest }\nagent A : R { on go(args: Json) { answer %s } }"
ACTIONS = """
    Ask the person for their name and return it.
    Ask the user politely which colour they like.
    Ask for their age, then return it.
    Ask "What is your name?" and return the answer.
    Print "hello".
    Print the sum to the console.
    Show the result on the screen.
    Send the customer an e-mail with the answer.
    Run the tests and say which fail.
    Search the web for the price.
    Store the result.
    Save it in the registry.
    Save the list as `names.txt`.
    Call the weather service and return the temperature.
    Use the search tool to find the answer.
    Delegate the question to the researcher.
    Pass the draft to the reviewer.
    Read notes.txt and summarise it.
    Read the file and count its lines.
    Summarise https://example.org/page in one line.
    Update the counter, then return the text.
    Remember the name for later.
    Wait for the user's reply.
    Have the user choose one of the colours.
    Find out the address from the customer.
    Confirm the order with the customer.
    Ask helper::answer and return what it says.
    Set state.count to 3.
    Write the answer to result.txt.
    Use registry_get to look up the price.
    Pregunta al usuario su nombre.
    Pide su edad y devuélvela.
    Guarda el resultado.
    Translate {{args.text}}, then print it.
    Ask the visitor which room they booked.
    Prompt the player for a move.
    Get the order number from the customer, and check it.
    Print each line in upper case.
    Execute the command `ls`.
    Look the price up on the web.
    Keep the total in the registry.
    Append the line to log.txt.
    Fetch https://example.org/a.json and count its keys.
    Notify the client of the delay.
    Invoke the translation service.
    Increment state.tries and return it.
    Increment the counter.
    Let the user pick a flavour.
    Tell reviewer::check to look at it.
    Ask the other agent for help.
    Have the writer draft a letter.
    Consulta https://example.org y resume la página.
    Imprime la suma.
    Solicita al cliente su correo.
"""
ANSWERS = """
    Ask politely, as a butler would, what the guest wants to drink.
    Ask a question about {{args.topic}} that a child can answer.
    Ask whether it is time for tea, in one line.
    Tell the user what {{args.word}} means.
    Explain to the customer why the parcel is late.
    Greet {{args.name}} warmly in one sentence.
    Announce the winner as a herald would.
    Show that {{args.n}} is even.
    Show your reasoning in three steps.
    Display the table as Markdown.
    Write a letter to the customer that says sorry.
    Say hello to the visitor in French.
    Give the person three reasons to smile.
    Confirm the booking in a friendly tone.
    Find out which language {{args.text}} is written in.
    Find the customer's name in {{args.mail}}.
    Get the user's age from {{args.text}}.
    Get the age from the user's message.
    Update {{args.text}} to British spelling.
    Remember that dates are written as day and month.
    Call the mood good or bad.
    Read {{args.text}} and name its main idea.
    Read the text and count the names in it.
    Set the tone to formal and rewrite {{args.text}}.
    Raise the level by one grade.
    Explain what std::vector is.
    Pass over what is unimportant, and sum up the rest.
    Run through the arguments for and against.
    Let her win the argument in the dialogue.
    Describe how to print a page.
    List the questions that you would ask the customer.
    Interview style: write three questions and answers about {{args.topic}}.
    Echo the last word of {{args.text}}.
    Saluda a {{args.name}} con cariño.
    Explica al cliente por qué el paquete llega tarde.
    Do not ask the user anything; translate {{args.text}}.
    Summarise the plan in the voice of a pirate who sends greetings.
    Save the best for last and list the prizes.
    Answer as if you spoke to a small child.
    Ask three follow-up questions about the report.
    Tell a joke about {{args.animal}}.
    Say it in the voice of a tired clerk.
    Explain the joke to somebody who has no humour.
    Call out every mistake in {{args.text}}.
    Give the user a compliment on their choice.
    Thank the customer for the patience, and ask politely for more of it.
    Welcome the visitor as an innkeeper would.
    Execute nothing; say only what the program would print.
    Record what surprised you in one sentence.
    Write as though the letter were read aloud.
    Note the tone of {{args.mail}}: angry, calm or happy.
    Use simple words that everybody understands.
    Use the active voice.
    Send-off: write a farewell for {{args.name}}.
    Warn the user of the risks in {{args.plan}}.
    Advise the client whether to sign.
    Pide disculpas al lector en tono formal.
    Cuenta un chiste sobre {{args.animal}}.
    Explica la diferencia al usuario.
    Print-quality prose: rewrite {{args.text}}.
    Find the user that wrote most in {{args.chat}}.
    Ask yourself what is missing, then answer.
    Check {{args.text}} for spelling.
    Look at {{args.text}} and rate it.
    Confirm or deny the claim in {{args.text}}.
    Put the sentences into the right order.
    Add a title to {{args.text}}.
    Increase the contrast between the two arguments.
"""


def is_told(sentence: str) -> bool:
    """Whether E0628 is said of a sentence as the text of an `answer`."""
    return "E0628" in [each.code for each in diagnostics_of_text(PROGRAM % json.dumps(sentence), {})]


def test_an_action_is_told() -> None:
    """Something outside of the conversation is asked, called, read, written or changed."""
    assert [] == [line for line in ACTIONS.strip().splitlines() if not is_told(line.strip())]


def test_a_manner_of_speech_is_no_action() -> None:
    """The model says, thinks or rewrites something: that is its answer."""
    assert [] == [line for line in ANSWERS.strip().splitlines() if is_told(line.strip())]
