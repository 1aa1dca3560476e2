"""The list of breaks names texts as they stand: a break that cannot be made shows nothing."""

from scripts.mutations import ROOT, mutations


def test_the_text_of_every_break_stands_once_in_its_file_and_there_are_a_hundred():
    listed = mutations()
    times = {
        f"{each['file']}: {each['name']}": (ROOT / each["file"]).read_text(encoding="utf-8").count(each["old"])
        for each in listed
    }
    assert {name: count for name, count in times.items() if count != 1} == {}
    assert len(times) == len(listed) >= 100
    assert all(each["tests"] and each["old"] != each["new"] for each in listed)
