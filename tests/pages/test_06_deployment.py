"""Page 06 in a real browser, and without one."""

import json

import pytest

pytestmark = pytest.mark.browser

PAGE = "06_deployment"
BOX = "A vllm serve command line"
CONTROLS = {"Release": "combobox", "CUDA graphs": "combobox", "Decode kernel": "combobox", "KV block": "combobox"}
CONTROLS |= {"Preset": "combobox", "Model length": None, "Batch tokens": None, "Sequences": None, BOX: None}
CONTROLS |= dict.fromkeys(("Speculative tokens", "Context", "Capacity", "Warmed widths", "Batch-invariant results"))


def put(sheet, label, text):
    sheet.focus(label).fill(text)
    sheet.press("Tab")


def says(sheet, word):
    """Whether the opening sentence comes to say this word: it begins with the verdict."""
    return sheet.soon(lambda: word in sheet.lead)


def test_it_opens_safe_with_the_numbers_of_the_default_settings(opened):
    assert "Nothing dangerous" in opened.lead
    # A capacity of 2^20 / 128 columns; 8,192 rows of 32 KiB are 256 MiB, 511 decode rows 16 MiB less one row.
    for number in ("8,192 columns", "512 at most", "272 MiB", "512 MiB", "524,416 to 1,048,703", "incident 4"):
        assert number in opened.text, number
    assert opened.page.get_by_role("status").first.get_by_text("Nothing dangerous").count() == 1


def test_every_control_takes_the_keyboard(opened):
    for label, role in CONTROLS.items():
        opened.focus(label, role)


def test_length_warmed_widths_and_release_are_set_by_keyboard_and_what_cannot_be_is_told(sheet):
    sheet.open(PAGE, model_len=16_384)
    put(sheet, "Model length", "33792")
    assert sheet.says("384 columns: 32,896 to 49,279")  # 257 × 128; 385 × 128 - 1
    assert sheet.holds("model_len=33792")
    for typed, told in (("-5", "is -5; "), ("9999999", "is 9999999; "), ("", "is empty; "), ("1.5", "is 1.5; ")):
        put(sheet, "Sequences", typed)
        assert sheet.says(f"Sequences {told}") and sheet.says("65,536. Shown: 512") and "seqs=512" in sheet.page.url
    put(sheet, "Warmed widths", "512, 256, 128")
    assert sheet.says("misses 384") and sheet.says("512 columns: never") and says(sheet, "Warning")
    assert sheet.holds("warm=128%2C256%2C512")
    put(sheet, "Warmed widths", "1024")  # beyond a capacity of 384 columns
    assert sheet.says("warmup_widths has 1024") and says(sheet, "Nothing dangerous")
    put(sheet, "Warmed widths", "128; 256")
    assert sheet.says("Warmed widths is 128; 256") and sheet.says("Shown: 1024")
    sheet.focus("Release", "combobox")
    sheet.press("ArrowUp", times=3)  # 0.30.0 → 0.29.0 → 0.28.0 → 0.27.1
    assert sheet.holds("release=0.27.1") and says(sheet, "Danger")
    assert "captured graph" in sheet.page.get_by_role("alert").first.inner_text()


def test_a_preset_keeps_the_release_and_a_clicked_cell_keeps_the_sizes(sheet):
    sheet.open(PAGE, release="0.27.1", preset="len_70000")
    assert "640 columns" in sheet.text and "danger: 1" in sheet.page.get_by_role("alert").first.inner_text()
    sheet.focus("Preset", "combobox")
    sheet.press("ArrowDown")  # the next one is 33,792 tokens
    assert sheet.holds("preset=len_33792") and sheet.holds("model_len=33792") and "release=0.27.1" in sheet.page.url
    sheet.page.get_by_label("vLLM 0.29.0, piecewise graphs: nothing dangerous").first.click()
    assert sheet.holds("release=0.29.0") and sheet.holds("graph=piecewise") and "model_len=33792" in sheet.page.url
    assert says(sheet, "Nothing dangerous")


def test_an_address_opens_its_state_and_what_cannot_be_used_is_told(sheet):
    sheet.open(PAGE, release="own", layout="packed", policy="aligned", graph="eager", seqs=64, spec=3)
    assert "Packed rows of 128-aligned width with no graphs" in sheet.lead
    assert "256 at most" in sheet.text and "12 of 64" in sheet.text  # 64 × (1 + 3) decode rows; widths drawn
    sheet.open(PAGE, release="0.25.0", seqs="many", warm="128;256", block=64, capacity=7680)
    for said in ("release is 0.25.0", "seqs is many", "warm is 128;256", "block is 64", "incident 3"):
        assert said in sheet.text, said
    assert "narrower than the longest sequence" in sheet.page.get_by_role("alert").first.inner_text()
    put(sheet, "Capacity", "1")  # a column is four bytes: 8,192 rows for decode and as many for prefill
    assert sheet.says("The released builder holds 64 KiB")


def test_a_pasted_line_sets_the_values_and_shows_no_secret(sheet):
    sheet.open(PAGE, preset="len_70000")
    image = "docker run vllm/vllm-openai:v0.27.1 --model m --max-model-len 128k --max-num-seqs 64 --enforce-eager"
    put(sheet, BOX, f"{image} --api-key sesame")
    for held in ("model_len=128000", "seqs=64", "graph=eager", "release=0.27.1", "preset=free"):
        assert sheet.holds(held), held
    assert says(sheet, "Warning")  # packed rows, but no graph holds their stride
    assert "--max-num-seqs 64" in sheet.text and "--api-key" in sheet.text
    assert "sesame" not in sheet.text.replace(sheet.page.get_by_label(BOX).input_value(), "")
    assert "sesame" not in sheet.page.url and "serve" not in sheet.page.url
    # The next one replaces all that the first one said, by its silence too; an empty box gives the controls back.
    put(sheet, BOX, "vllm serve m")
    assert sheet.holds("seqs=1024") and "graph=full&" in sheet.page.url and "model_len=1048576&" in sheet.page.url
    assert "release=0.30.0&" in sheet.page.url and says(sheet, "Nothing dangerous")
    put(sheet, BOX, "vllm serve deepseek-ai/DeepSeek-V4.1 --max-num-seqs 8")
    assert sheet.says("Nothing of this applies to the model") and sheet.says("--model V4.1")
    put(sheet, BOX, "")
    assert sheet.holds("seqs=512") and "model_len=70000&" in sheet.page.url
    # What the page cannot hold was not read either; a control that is moved settles what it says.
    unread = {"-dcp 2": "sharded context", "--max-num-seqs 100000": "65,536", "--block-size 64": "of 128"}
    for line, why in unread.items():
        put(sheet, BOX, f"vllm serve m {line}")
        assert says(sheet, "Not enough read to say") and sheet.says(why), line
    put(sheet, BOX, "vllm serve m --max-model-len auto")
    assert says(sheet, "Not enough read to say") and sheet.says("? unknown")
    put(sheet, "Model length", "980224")
    assert says(sheet, "Nothing dangerous")


HOSTILE = """<iframe srcdoc='<script>parent.document.title="script"</script>'></iframe>
<img src=x onerror='document.title="script"'> [link](javascript:document.title="script") https://example.com
$NAME $$x^2$$ **bold** `code`""".replace("\n", " ")


def test_text_of_a_command_comes_back_as_text_and_one_that_is_not_read_leaves_no_verdict(sheet):
    sheet.open(PAGE)
    for line in (f'vllm serve m --max-model-len "{HOSTILE}"', f"vllm serve m --{HOSTILE}", HOSTILE):
        put(sheet, BOX, line)
        assert says(sheet, "Not enough read to say"), line
        assert sheet.page.locator("iframe, img[src=x], marimo-tex, a[href^=javascript]").count() == 0, line
        put(sheet, BOX, "")
        assert says(sheet, "Nothing dangerous"), line
    assert sheet.page.title() != "script"
    put(sheet, BOX, "vllm serve m --port " + "1" * 70_000)
    assert sheet.soon(lambda: "65,536" in sheet.page.get_by_role("alert").first.inner_text())
    assert says(sheet, "Not enough read to say")


def test_downloads_links_and_the_command_hold_what_is_shown(sheet):
    sheet.open(PAGE, release="0.27.1", seqs=64, model_len=70_000, warm="128")
    table = sheet.download("findings CSV").decode().splitlines()
    assert table[0] == "severity,incident,code,title,why,setting"
    assert [line.split(",")[2] for line in table[1:3]] == ["moving-rows", "uncovered-widths"]
    held = json.loads(sheet.download("widths JSON"))
    assert [row["width"] for row in held["rows"]] == [128, 256, 512, 640]
    assert held["settings"]["release"] == "0.27.1"
    costs = json.loads(sheet.download("costs JSON"))["rows"]
    assert [row["max_seq_len"] for row in costs if row["step"] == "prefill"] == [32_768, 70_000]
    for option in ("python -m c128a.deployment --release 0.27.1", "--max-num-seqs 64", "--warmup-widths 128"):
        assert option in sheet.text, option
    for word in ("✖ Danger", "▲ Warning", "● Good to know"):  # by word and shape beside colour
        assert word in sheet.text, word
    link = sheet.page.get_by_role("link", name="See the rows move").first
    href = link.get_attribute("href")
    assert href.startswith("?file=02_layout.py") and "layout=packed" in href and "model_len=70000" in href
    link.click()
    assert sheet.holds("file=02_layout.py")
