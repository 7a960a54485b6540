"""How the decomposer is judged: labelled cases, scoring, reports."""
