# /// script
# requires-python = ">=3.11"
# dependencies = ["altair>=5.5", "marimo>=0.25", "pandas>=2.2"]
#
# [tool.marimo.runtime]
# pythonpath = ["."]
#
# [tool.marimo.display]
# theme = "system"
#
# [tool.marimo.opengraph]
# title = "8 · Guess, then see"
# description = "The questions of all pages, drawn from a seed, with a score to take along."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Guess, then see", html_head_file="head.html")

with app.setup:
    import marimo as mo
    import pandas as pd

    from c128a.show import forms, page, theme
    from c128a.teach.ask import FIELDS, reply
    from c128a.teach.questions import QUESTIONS, draw

    OPEN, RIGHT, WRONG, GIVEN = "not answered", "right", "wrong", "answered"
    LOOKS = {RIGHT: theme.VERDICTS["right"], WRONG: theme.VERDICTS["wrong"]}
    REST = {OPEN: theme.Style(theme.FAINT, ink=theme.INK)}


@app.cell(hide_code=True)
def _():
    settings, *_ = page.open_page(FIELDS)
    seed_ui = page.number(FIELDS["seed"], settings.values["seed"], label="Seed: another one draws other questions")
    return seed_ui, settings


@app.cell(hide_code=True)
def _(seed_ui, settings):
    _, wrong = settings.take({"seed": seed_ui.value})
    values = dict(settings.values)
    seed, hidden = values["seed"], values["answers"] == "hidden"
    questions = [question for name in QUESTIONS for question in draw(seed, name)]
    guesses = mo.ui.array(
        mo.ui.radio(question.choices, label=f"**{number}.** {question.text}")
        for number, question in enumerate(questions, 1)
    )
    return guesses, hidden, questions, seed, values, wrong


@app.cell(hide_code=True)
def _(guesses, hidden, questions):
    score = pd.DataFrame(
        {
            "page": [page.PAGES[question.page] for question in questions],
            "question": [question.text for question in questions],
            "guess": [guess or "" for guess in guesses.value],
            "answer": ["" if hidden else question.answer for question in questions],
        }
    )
    score["outcome"] = (score["guess"] == score["answer"]).map({True: RIGHT, False: GIVEN if hidden else WRONG})
    score["outcome"] = score["outcome"].where(score["guess"] != "", OPEN)
    return (score,)


@app.cell(hide_code=True)
def _(hidden, score, seed, seed_ui, settings, values, wrong):
    page.remember(values)
    _given, _right = (score["outcome"] != OPEN).sum(), (score["outcome"] == RIGHT).sum()
    _lead = f"{len(score)} questions of seed {seed}: {_given} answered"
    _lead += "; the answers are hidden." if hidden else f", **{_right} of them right**."
    _numbers = (score.groupby("page").cumcount() + 1).map("question {}".format)
    page.stack(
        page.header("08_questions", "Guess, then see", _lead, values),
        page.notes([*settings.problems, *wrong]),
        page.panel([seed_ui]),
        forms.matrix(
            score.assign(number=_numbers, kind=score["outcome"], tip=score["question"]),
            row="page",
            column="number",
            description="The outcome of each question, by page",
            styles=({GIVEN: theme.Style(theme.BLUE)} if hidden else LOOKS) | REST,
            cell_height=30,
        ),
        page.downloads(score, "c128a-questions", values, "the score"),
    )
    return


@app.cell(hide_code=True)
def _(guesses, hidden, questions, values):
    def _of(name):
        shown = [
            page.columns(
                guesses[at], page.sentence(reply(question, guess, values, "_blank")) if guess and not hidden else ""
            )
            for at, (question, guess) in enumerate(zip(questions, guesses.value, strict=True))
            if question.page == name
        ]
        return page.stack(mo.md(f"## {page.PAGES[name]}"), *shown, gap=1)

    page.stack(*map(_of, QUESTIONS), gap=1.5)
    return


if __name__ == "__main__":
    app.run()
