"""README's figures are those of docs/results, and its links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def bench(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_figures_are_those_of_the_results() -> None:
    for path, text in bench("readme").pages().items():
        assert path.read_text(encoding="utf-8") == text, "run python bench/readme.py"


def test_every_relative_link_leads_to_a_file() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("docs/*.md")]:
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page}: {link}"
