"""The questions of a page as one element: each choice opens its reply, without a control or a cell to run."""

from __future__ import annotations

from html import escape
from typing import Any

import marimo as mo

from c128a.show import page
from c128a.teach.questions import QUESTIONS, Question, draw

FIELDS: dict[str, page.Field] = {"seed": page.Integer(1, 0, 9999), "answers": page.Choice("shown", ("shown", "hidden"))}


def ask(name: str) -> mo.Html:
    """The questions of the page whose name begins so ("01"), drawn from `seed` of the address.

    A choice that is opened says whether it is right, why, and where to see it; with `answers=hidden` none opens.
    """
    asked, _ = page.read(page.address(), FIELDS)
    (of,) = (key for key in QUESTIONS if key.startswith(name))
    parts = [_shown(question, asked, f"{of}-{at}") for at, question in enumerate(draw(asked["seed"], of))]
    more, every = page.link(of, asked | {"seed": asked["seed"] + 1}), page.link("08_questions", asked)
    other = "" if page.RECORDED else f"Other questions by [the next seed]({more}). "
    end = mo.md(f"{other}[All questions]({every}) with a score.").text
    return mo.Html(f'<section class="c128a-ask" aria-label="Questions">{"".join(parts)}{end}</section>')


def reply(question: Question, choice: str, asked: dict[str, Any], target: str = "_self") -> str:
    """What a choice is told, in Markdown; asked: seed and answers, for the link, which opens in `target`."""
    told = "✔ **Right.**" if choice == question.answer else f"✘ **No, {question.answer}.**"
    seen = escape(page.link(question.page, question.settings | asked))
    shown = "" if page.RECORDED else f' <a href="{seen}" target="{target}">See it</a>'
    return f"{told} {question.why}{shown}"


def _shown(question: Question, asked: dict[str, Any], key: str) -> str:
    hidden = asked["answers"] == "hidden"
    replies = ["" if hidden else mo.md(reply(question, choice, asked)).text for choice in question.choices]
    tag = "<span>{}</span>{}" if hidden else f'<details name="{key}"><summary>{{}}</summary>{{}}</details>'
    choices = "".join(tag.format(escape(one), told) for one, told in zip(question.choices, replies, strict=True))
    return mo.md(f"**Guess:** {question.text}").text + f"<div>{choices}</div>"
