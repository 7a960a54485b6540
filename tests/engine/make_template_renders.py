"""Has transformers render chat templates, for test_engine_templates.py to compare with. Needs transformers 5:

python tests/engine/make_template_renders.py tests/data/engine/templates tests/data/engine/template_renders.json
"""

import datetime
import json
import sys
from pathlib import Path
from typing import Any

import transformers.utils.chat_template_utils as chat_templates
from template_cases import CASES

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class FixedDate(datetime.datetime):
    """The day on which all fixtures were made."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "FixedDate":
        return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)


def render(source: str, case: dict[str, Any]) -> str | None:
    """What transformers makes of a case, None where the template refuses it."""
    given = {"add_generation_prompt": True, **case}
    messages = given.pop("messages")
    try:
        rendered, _ = chat_templates.render_jinja_template(
            conversations=[messages], chat_template=source, **TOKENS, **given
        )
    except Exception:
        return None
    return rendered[0]


def main(folder: Path, output: Path) -> None:
    chat_templates.datetime = FixedDate
    renders = {
        path.stem: {name: render(path.read_text(), case) for name, case in CASES.items()}
        for path in sorted(folder.glob("*.jinja"))
    }
    output.write_text(json.dumps(renders, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
