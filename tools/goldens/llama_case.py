"""A whole small Llama in f64, with the scaling of Llama 3: loss and every gradient."""
from goldens.files import Golden
from goldens.gpt2_case import BATCH, step_of
from llama import Llama

NAME = "llama_small"
MODEL = {"layers": 3, "heads": 4, "kv_heads": 2, "channels": 64, "hidden": 96, "vocab": 96,
         "theta": 500, "scaling": {"factor": 4, "low_freq_factor": 1, "high_freq_factor": 4,
                                   "original_context": 32}}
CONTEXT = 48


def llama_case():
    """Weights under their own names (f32); the rest as in gpt2_case, but for the steps."""
    tensors, _, _ = step_of(NAME, Llama(**MODEL).double(), MODEL["vocab"], CONTEXT)
    yield Golden(NAME, {"op": "llama", **MODEL, "batch": BATCH, "norm": "the mean loss's"}, tensors)
