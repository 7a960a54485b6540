"""The same prompt gives the same plan, on any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from decomp_router.decompose.decomposer import load

PROMPTS = [
    "Explain how tides work and write a haiku about rain.",
    "Escribe un poema sobre el mar y luego tradúcelo al inglés.",
    "Sum up what a heat pump does, do the same for a gas boiler, and tell me which one suits an old stone house.",
]


def test_threads_do_not_disturb_each_other() -> None:
    decomposer = load()
    alone = [decomposer.read_anew(prompt) for prompt in PROMPTS]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(decomposer.read_anew, PROMPTS * 4))
    assert together == alone * 4
