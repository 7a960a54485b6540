"""The sentence that tells a branch which part of the message is its own, in the prompt's language."""

from __future__ import annotations

_SENTENCES = {
    "en": "Answer only this part of the message above: «{part}». "
    "Do not answer the other parts; no greeting, no preamble, no closing.",
    "es": "Responde solo a esta parte del mensaje anterior: «{part}». "
    "No respondas a las otras partes; sin saludo, sin introducción y sin despedida.",
    "fr": "Réponds uniquement à cette partie du message ci-dessus : «{part}». "
    "Ne réponds pas aux autres parties ; sans salutation, sans introduction, sans conclusion.",
    "de": "Beantworte nur diesen Teil der Nachricht oben: «{part}». "
    "Beantworte die anderen Teile nicht; keine Begrüßung, keine Einleitung, kein Schlusswort.",
    "pt": "Responda apenas a esta parte da mensagem acima: «{part}». "
    "Não responda às outras partes; sem saudação, sem introdução e sem despedida.",
    "it": "Rispondi solo a questa parte del messaggio qui sopra: «{part}». "
    "Non rispondere alle altre parti; niente saluti, niente introduzione, niente chiusura.",
}

# Frequent words that tell these languages apart; those that two of them share are left out.
_STOP_WORDS = {
    "en": "the and of to is that it for with on as this are be you what how my give write about each from which",
    "es": "el los las y del una unos es por cómo qué cuál cuáles escribe dame haz lista más pero sobre mi también muy",
    "fr": "le les et des une est pour dans du avec sur qui au quels quelle donne écris fais moi aux mon ces puis",
    "de": "der die das und ist nicht ein eine zu den mit auf für von dem wie mir schreibe gib welche über mein dann",
    "pt": "o os as e do da em uma não um com ao dos quais escreva faça você meu sobre liste também é três depois",
    "it": "il gli e di che è una per non sono della dei nel scrivi dammi quali come mio elenca spiega anche poi tre",
}
_LANGUAGE_OF: dict[str, list[str]] = {}
for _language, _words in _STOP_WORDS.items():
    for _word in _words.split():
        _LANGUAGE_OF.setdefault(_word, []).append(_language)


def language_of(text: str) -> str:
    """The language whose stop words occur most often; English where none does."""
    counts = dict.fromkeys(_SENTENCES, 0.0)
    for word in text.casefold().split():
        languages = _LANGUAGE_OF.get(word.strip(".,;:!?¿¡()\"'«»"), ())
        for language in languages:
            counts[language] += 1 / len(languages)
    return max(counts, key=counts.__getitem__)


def instruction(prompt: str, part: str) -> str:
    """The bracketed sentence for one part of a prompt."""
    return f"[{_SENTENCES[language_of(prompt)].format(part=' '.join(part.split()))}]"
