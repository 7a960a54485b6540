"""Fields that clients send along for other servers. llama-server passes over all of them; here they are passed over
where they ask for nothing, or for what another field of the request says too."""

from collections.abc import Mapping
from dataclasses import dataclass

from pascal_engine.server.errors import ApiError, not_supported


@dataclass(frozen=True)
class Foreign:
    """`neutral` are the values that ask for nothing; None stands for any value. `own` is the field here that means the
    same: the value that this one has is fine too."""

    neutral: tuple[object, ...] | None = None
    own: str | None = None

    def check(self, name: str, value: object, body: Mapping[str, object]) -> None:
        """Raises a 400 where `value` asks for what the rest of `body` does not say."""
        if self.neutral is None or value in self.neutral:
            return
        if self.own is None:
            raise not_supported(f"'{name}'")
        if self.own not in body or value != body[self.own]:
            raise ApiError(400, f"'{name}' is another server's name; give '{self.own}' instead")


_BOOKKEEPING = ("api_server", "api_type", "chat_id", "keep_alive", "num_ctx", "session_id", "truncation_length")
_FOR_SPEED = ("n_max", "n_min", "ngram_min_hits", "ngram_size_m", "ngram_size_n", "p_min", "type")
"""Of `speculative`: how drafts are made, which changes no answer."""
_OF_OTHERS = ("dynamic_temperature", "rep_pen_slope", "smoothing_curve", "temperature_last")
"""They shape what another field switches on."""

_NEUTRAL: dict[str, tuple[object, ...]] = {
    "add_bos_token": (True,),
    "banned_strings": ([],),
    "custom_token_bans": ("",),
    "do_sample": (True,),
    "early_stopping": (False,),
    "encoder_repetition_penalty": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "guidance_scale": (1,),
    "include_reasoning": (True,),
    "length_penalty": (1,),
    "max_tokens_second": (0,),
    "min_length": (0,),
    "min_tokens": (0,),
    "mirostat_mode": (0,),
    "negative_prompt": ("",),
    "no_repeat_ngram_size": (0,),
    "num_beams": (1,),
    "penalize_nl": (False,),
    "penalty_alpha": (0,),
    "reasoning_budget": (-1,),
    "skew": (0,),
    "skip_special_tokens": (True,),
    "smoothing_factor": (0,),
    "slot_id": (-1,),
    "spaces_between_special_tokens": (True,),
    "t_max_prompt_ms": (-1, 0),
    "tfs": (1,),
    "tfs_z": (1,),
    "thinking_budget_tokens": (-1,),
    "top_a": (0,),
    "verbosity": ("medium",),
}
_RENAMED: dict[str, tuple[str, tuple[object, ...]]] = {
    "ban_eos_token": ("ignore_eos", (False,)),
    "grammar_string": ("grammar", ("",)),
    "max_new_tokens": ("n_predict", ()),
    "nsigma": ("top_n_sigma", (0, -1)),
    "num_predict": ("n_predict", ()),
    "rep_pen": ("repeat_penalty", (1,)),
    "rep_pen_range": ("repeat_last_n", (0,)),
    "repetition_penalty": ("repeat_penalty", (1,)),
    "repetition_penalty_range": ("repeat_last_n", (0,)),
    "sampler_seed": ("seed", (-1,)),
    "stopping_strings": ("stop", ([],)),
    "typical": ("typical_p", (1,)),
}

FOREIGN: Mapping[str, Foreign] = {
    **dict.fromkeys((*_BOOKKEEPING, *_OF_OTHERS, *(f"speculative.{name}" for name in _FOR_SPEED)), Foreign()),
    **{name: Foreign(neutral) for name, neutral in _NEUTRAL.items()},
    **{name: Foreign(neutral, own) for name, (own, neutral) in _RENAMED.items()},
}
