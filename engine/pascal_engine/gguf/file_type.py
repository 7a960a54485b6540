"""The name of a file's mix of number formats."""

from gguf import LlamaFileType

_SIZES = {"_S": " - Small", "_M": " - Medium", "_L": " - Large"}


def file_type_name(number: int | None) -> str:
    """What llama.cpp calls `general.file_type`, as "Q4_K - Medium"; "unknown" where the file does not say."""
    try:
        name = LlamaFileType(number).name
    except ValueError:
        return "unknown"
    name = "all F32" if name == "ALL_F32" else name.removeprefix("MOSTLY_")
    family, size = name[:-2], name[-2:]
    if name == "Q2_K":
        return "Q2_K - Medium"
    return family + _SIZES[size] if family.endswith("_K") and size in _SIZES else name
