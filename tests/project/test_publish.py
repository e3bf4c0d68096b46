"""What publishing a notebook writes: its form, and the stamp that says whether it is stale."""

import subprocess
import sys

import publish
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_files import ROOT, normalise, read, write


def page(*sources):
    cells = [new_code_cell("import os", id="setup"), new_markdown_cell("# 00 · A title")]
    return new_notebook(cells=cells + [new_code_cell(source) for source in sources])


# Stamps ------------------------------------------------------------------------------------------


def test_a_stamp_names_code_commit_versions_and_duration():
    stamp = publish.stamp_of(page("1 + 1"), 2.345)
    assert stamp["seconds"] == 2.3 and len(stamp["code"]) == 64
    assert {"per_tutorial", "python", "numpy", "torch"} <= set(stamp)
    commit = stamp["commit"].rstrip("+")
    subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, check=True)


def test_a_page_is_stale_once_its_own_code_has_changed():
    notebook = page("1 + 1", "2 + 2")
    assert not publish.is_current(notebook)
    notebook.metadata.per_tutorial = publish.stamp_of(notebook, 1.0)
    notebook.cells[0].source = "import sys"  # the set-up cell
    notebook.cells[1].source = "# 00 · Another title"
    assert publish.is_current(notebook)
    notebook.cells[2].source = "1 + 2"
    assert not publish.is_current(notebook)


@pytest.mark.slow
def test_what_is_stale_is_named_and_is_current_once_it_is_published(tmp_path, monkeypatch):
    def main(*words):
        monkeypatch.setattr(sys, "argv", ["publish.py", *map(str, words)])
        try:
            publish.main()
        except SystemExit as end:
            return end.code

    videos = tmp_path / "videos"
    videos.mkdir()
    monkeypatch.setattr(publish, "VIDEOS", videos)
    film = "from per_tutorial.notebook.videos import video_file; video_file('{}.mp4').touch()"
    good, bad = tmp_path / "00_good.ipynb", tmp_path / "01_bad.ipynb"
    write(page("print(6 * 7)", film.format("good")), good)
    write(page("1 / 0", film.format("bad")), bad)
    assert "notebooks/00_good.ipynb notebooks/01_bad.ipynb" in main("--check", good, bad)
    before = bad.read_bytes()
    assert "01_bad.ipynb is unchanged" in main(good, bad)
    assert bad.read_bytes() == before
    assert read(good).cells[2].outputs[0].text == "42\n"
    assert [film.name for film in videos.iterdir()] == ["good.mp4"]
    assert main("--check", good) == 0


# Form --------------------------------------------------------------------------------------------


def test_only_the_allowed_metadata_stay_and_folded_cells_are_folded_everywhere():
    imports = new_code_cell("1", metadata={"tags": ["imports"], "collapsed": True})
    drawing = new_code_cell("2", metadata={"tags": ["hide-input"]})
    metadata = {"widgets": {"state": {}}, "colab": {}, "per_tutorial": {"code": "0"}}
    notebook = new_notebook(cells=[imports, drawing], metadata=metadata)
    plain = normalise(notebook, "03_per_dqn.ipynb")
    assert plain.cells[0].metadata == {"tags": ["imports"]}
    assert plain.cells[1].metadata.jupyter.source_hidden
    assert plain.cells[1].metadata.cellView == "form"
    assert set(plain.metadata) == {"kernelspec", "language_info", "per_tutorial"}
    assert normalise(new_notebook(), "05_atari_per.ipynb").metadata.accelerator == "GPU"


def test_widgets_and_the_history_of_progress_bars_go():
    widget = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "IntSlider(value=1)"}
    picture = new_output("display_data", {"image/png": "aGk="})
    outputs = [
        new_output("stream", name="stderr", text="\r  0%|   | 0/2\r 50%|#  | 1/2"),
        new_output("stream", name="stderr", text="\r100%|###| 2/2\nsecond\n"),
        picture,
        new_output("stream", name="stdout", text="a\n"),
        new_output("stream", name="stdout", text="b\n"),
        new_output("display_data", widget),
    ]
    notebook = new_notebook(cells=[new_code_cell("run()", outputs=outputs)])
    bar, shown, text = normalise(notebook, "02_uniform_dqn.ipynb").cells[0].outputs
    assert (bar.text, shown, text.text) == ("100%|###| 2/2\nsecond\n", picture, "a\nb\n")
