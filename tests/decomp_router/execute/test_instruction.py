"""The instruction speaks the prompt's language."""

from __future__ import annotations

import pytest

from decomp_router.execute.instruction import instruction, language_of


@pytest.mark.parametrize(
    ("prompt", "language"),
    [
        ("Write a poem about the sea. What is the capital of Peru?", "en"),
        ("Escribe un poema sobre el mar. ¿Cuál es la capital del Perú?", "es"),
        ("Écris un poème sur la mer. Quelle est la capitale du Pérou ?", "fr"),
        ("Schreibe ein Gedicht über das Meer. Was ist die Hauptstadt von Peru?", "de"),
        ("Escreva um poema sobre o mar. Qual é a capital do Peru?", "pt"),
        ("Scrivi una poesia sul mare. Qual è la capitale del Perù? Elenca anche tre fiumi.", "it"),
        ("2+2? 3*3?", "en"),
    ],
)
def test_language_of_a_prompt(prompt: str, language: str) -> None:
    assert language_of(prompt) == language


def test_the_part_is_quoted_on_one_line() -> None:
    text = instruction("Écris un poème sur la mer et une liste.", "une\n  liste {x}")
    assert text.startswith("[Réponds uniquement")
    assert "«une liste {x}»" in text
    assert text.endswith("]")
