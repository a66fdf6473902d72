"""`validation/run.py` finds every script, and loads it so that its own processes find it too."""

import sys

import pytest
from validation import run


def test_the_inference_core_is_examined_first() -> None:
    names = {"adversarial", "comparisons", "defaults", "enumeration", "fdr", "given", "highest"}
    names |= {"change", "named", "power", "summaries", "unknown", "epochs", "repair", "planning"}
    names |= {"measures"}
    first = run.scripts([])[: len(names)]
    assert {path.stem for path in first} == names
    assert first == run.scripts(["inference"])


@pytest.mark.parametrize("folder", ["warranty", *run.PAPERS])
def test_every_folder_has_scripts_with_stored_results(folder: str) -> None:
    assert run.scripts([folder])
    assert run.stored([folder])


def test_a_loaded_script_can_be_found_by_name() -> None:
    script = next(path for path in run.scripts(["inference"]) if path.stem == "adversarial")
    module = run.load(script)
    assert sys.modules["validation_inference_adversarial"] is module
    assert str(script.parent) not in sys.path[:1]


def test_the_page_shows_the_worst_of_the_random_designs_only() -> None:
    adversarial = "\n".join(run.inference()).split("### ")[1]
    assert "inference-adversarial" in adversarial
    shown = [line for line in adversarial.splitlines() if line.startswith("|")]
    assert 2 < len(shown) <= run.WORST + 2
