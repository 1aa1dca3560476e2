"""Page 06 in a real browser."""

import json

import pytest

pytestmark = pytest.mark.browser

PAGE = "06_deployment"
CONTROLS = [
    ("Release", "combobox"),
    ("CUDA graphs", "combobox"),
    ("Decode kernel", "combobox"),
    ("Model length", None),
    ("Batch tokens", None),
    ("Sequences", None),
    ("Speculative", None),
    ("KV block", "combobox"),
    ("Context", None),
    ("Capacity", None),
    ("Warmed widths", None),
    ("Batch-invariant results", None),
    ("Preset", "combobox"),
    ("A vllm serve command line", None),
]


def verdict(sheet):
    return sheet.page.get_by_role("status").first.inner_text()


def codes(sheet):
    cards = sheet.page.locator("section[data-code]")
    return [cards.nth(at).get_attribute("data-code") for at in range(cards.count())]


def test_it_opens_safe_and_says_so(opened):
    assert opened.page.locator("h1").inner_text() == "Is my deployment safe?"
    assert opened.lead.endswith("nothing dangerous found.")
    assert "Nothing dangerous" in verdict(opened)
    assert "8,192 columns" in opened.text and "272 MiB" in opened.text and "512 MiB" in opened.text


@pytest.mark.parametrize(("label", "role"), CONTROLS, ids=[label for label, _ in CONTROLS])
def test_every_control_takes_the_keyboard(opened, label, role):
    opened.focus(label, role)


def test_length_warmed_widths_and_release_are_changed_by_keyboard_and_a_list_without_384_is_found(sheet):
    sheet.open(PAGE, model_len=16_384)
    assert "384 columns" not in sheet.text and "uncovered-widths" not in codes(sheet)
    sheet.focus("Model length").select_text()
    sheet.page.keyboard.type("33792")
    sheet.press("Tab")
    assert sheet.says("384 columns")
    assert sheet.holds("model_len=33792")
    sheet.focus("Warmed widths")
    sheet.page.keyboard.type("128, 256, 512")
    sheet.press("Tab")
    assert sheet.says("Your list misses 384.")
    assert "Warning" in verdict(sheet) and "uncovered-widths" in codes(sheet)
    sheet.focus("Release", "combobox")
    sheet.press("ArrowUp", times=3)  # 0.30.0 → 0.29.0 → 0.28.0 → 0.27.1
    assert sheet.holds("release=0.27.1")
    assert "rows move under the captured graph" in sheet.lead
    assert "Danger" in verdict(sheet) and codes(sheet)[0] == "moving-rows"


def test_a_preset_moves_what_it_names_and_keeps_the_release(sheet):
    sheet.open(PAGE, release="0.27.1", preset="len_70000")
    sheet.focus("Preset", "combobox")
    sheet.press("ArrowDown")  # the next one is 33,792 tokens
    assert sheet.holds("preset=len_33792") and sheet.holds("model_len=33792")
    assert "release=0.27.1" in sheet.page.url and sheet.says("384 columns")


def test_an_address_with_state_opens_that_state(sheet):
    sheet.open(PAGE, release="own", layout="packed", policy="pow2", graph="eager", seqs=64, spec=3, model_len=33_792)
    assert "Packed rows of power-of-two width with no graphs" in sheet.lead
    assert "256 at most" in sheet.text  # 64 × (1 + 3) decode rows
    assert codes(sheet)[0] == "packed-outside-graphs"


def test_an_address_with_nonsense_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, release="0.25.0", seqs="many", warm="128;256", block=64)
    assert "nothing dangerous found" in sheet.lead
    for said in ("release is 0.25.0", "seqs is many", "warm is 128;256", "block is 64"):
        assert said in sheet.text


def test_a_capacity_smaller_than_the_length_is_found(sheet):
    sheet.open(PAGE, capacity=7680)
    assert codes(sheet)[0] == "capacity-too-small"
    assert "7,680" in sheet.text and "1,048,576" in sheet.text


def test_a_pasted_line_sets_the_values_and_lists_the_rest(sheet):
    sheet.open(PAGE, release="0.27.1")
    area = sheet.focus("A vllm serve command line")
    area.fill("vllm serve m --max-model-len 128k --max-num-seqs 64 --enforce-eager -tp 8")
    sheet.press("Tab")
    sheet.settle(400)
    assert sheet.holds("model_len=128000") and sheet.holds("seqs=64") and sheet.holds("graph=eager")
    assert "Warning" in verdict(sheet)  # packed rows, but no graph holds their stride
    assert "--max-num-seqs 64" in sheet.text and "-tp 8" in sheet.text and "Not read" in sheet.text
    assert "serve" not in sheet.page.url  # a line may hold a key
    area.fill("vllm serve m --max-model-len 1.5M")
    sheet.press("Tab")
    sheet.settle(400)
    assert "The command line was not read" in sheet.page.get_by_role("alert").first.inner_text()
    assert "model_len=128000" in sheet.page.url


HOSTILE = (
    """<iframe srcdoc='<script>parent.document.title="script"</script>'></iframe>""",
    """<img src=x onerror='document.title="script"'>""",
    """[link](javascript:document.title="script") https://example.com""",
    "$NAME $$x^2$$ **bold** `code`",
)


def test_text_of_a_pasted_command_comes_back_as_text_and_a_command_that_is_not_read_leaves_no_verdict(sheet):
    sheet.open(PAGE)
    area = sheet.focus("A vllm serve command line")
    for text in HOSTILE:
        for command in (f'vllm serve m --max-model-len "{text}"', f"vllm serve m --max-num-seqs 1 --{text}", text):
            area.fill(command)
            sheet.press("Tab")
            assert sheet.soon(lambda: "Not enough read to say" in verdict(sheet)), command
            assert sheet.page.locator("iframe, img[src=x], marimo-tex, a[href^=javascript]").count() == 0, command
            area.fill("")
            sheet.press("Tab")
            assert sheet.soon(lambda: "Nothing dangerous" in verdict(sheet)), command
    assert sheet.page.title() != "script"
    area.fill("vllm serve m --served-model-name " + "x" * 70_000)
    sheet.press("Tab")
    assert sheet.soon(lambda: "65,536" in sheet.page.get_by_role("alert").first.inner_text())


def test_what_a_command_holds_and_was_not_read_stands_above_the_verdict(sheet):
    sheet.open(PAGE)
    sheet.focus("A vllm serve command line").fill("vllm serve m --decode-context-parallel-size 2")
    sheet.press("Tab")
    assert sheet.soon(lambda: "Not enough read to say" in verdict(sheet))
    assert "it could change the verdict: --decode-context-parallel-size" in sheet.text


def test_downloads_and_the_command_hold_what_is_shown(sheet):
    sheet.open(PAGE, release="0.27.1", seqs=64)
    table = sheet.download("findings CSV").decode().splitlines()
    assert table[0] == "severity,incident,code,title,why,setting"
    assert [line.split(",")[2] for line in table[1:]] == codes(sheet)
    held = json.loads(sheet.download("widths JSON"))
    assert [row["width"] for row in held["rows"]] == [128, 256, 512, 1024, 2048, 4096, 8192]
    assert held["settings"]["release"] == "0.27.1"
    assert "python -m c128a.deployment --release 0.27.1" in sheet.text
    assert "--max-num-seqs 64" in sheet.text


def test_a_finding_links_to_the_page_that_shows_it_and_tells_its_severity_by_word_and_shape_beside_colour(sheet):
    sheet.open(PAGE, release="0.27.1", model_len=70_000, warm="128")
    href = sheet.page.locator("section[data-code=moving-rows] a").get_attribute("href")
    assert href.startswith("?file=02_layout.py") and "layout=packed" in href and "model_len=70000" in href
    heads = sheet.page.locator("section[data-code]")
    for word, shape in (("Danger", "✖"), ("Warning", "▲"), ("Good to know", "●")):
        assert any(word in (text := heads.nth(at).inner_text()) and shape in text for at in range(heads.count())), word


def test_no_chart_is_cut_off_when_opened_dark_and_then_in_any_look(sheet):
    for look in sheet.every_look(PAGE, first_dark=True, model_len=33_792, warm="128,256,512", spec=3):
        assert sheet.cut_off() == [], look
