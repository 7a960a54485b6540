"""From logits to the next token: the chain of samplers, and grammars that hold it to a form."""
