"""`pascal-engine inspect`: what a model is made of, and what would fit where."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.inspection.report import Report
from pascal_engine.inspection.tables import show

_DESCRIPTION = """\
Shows a model's architecture and hyper-parameters, its tensors by number format, the memory it needs, and how many slots
of how much context fit on cards and on this machine. Only the file's header is read; of a split model give any part."""

_EXAMPLES = """\
examples:
  pascal-engine inspect model.gguf
  pascal-engine inspect model-00001-of-00003.gguf --json
"""


def main(argv: list[str]) -> int:
    """Returns the exit code: 0, or 2 if the file cannot be read."""
    arguments = _parser().parse_args(argv)
    try:
        report = Report.of(ModelFile(Path(arguments.file)))
    except ModelError as error:
        print(f"pascal-engine inspect: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        show(report, Console(highlight=False))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pascal-engine inspect",
        allow_abbrev=False,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, all sizes in bytes")
    parser.add_argument("file", metavar="FILE", help="the GGUF file")
    return parser
