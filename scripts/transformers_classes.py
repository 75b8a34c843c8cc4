"""Write contracts/transformers/<version>.yaml: what transformers makes of a flat config.json, from the release itself.

Run with an interpreter that has the wanted transformers release installed (no torch needed):

    python scripts/transformers_classes.py > contracts/transformers/5.16.1.yaml

What a class does after its fields are filled (``__post_init__``) is not visible in its fields; those clauses are
written by hand under POST below, each with its citation.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing

import transformers
import yaml

from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES


#: Model types whose defaults matter: those that published drafts, exporters and targets use.
WANTED = [
    "qwen3",
    "qwen2",
    "llama",
    "mistral",
    "gemma4_text",
    "gemma3_text",
    "gpt_oss",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_5_text",
    "qwen3_5_moe_text",
    "glm4_moe",
    "glm_moe_dsa",
    "deepseek_v2",
    "deepseek_v3",
    "lfm2",
    "phi3",
    "olmo2",
    "minimax_m2",
    "glm4",
    "nemotron_h",
    "deepseek_v4",
]
#: Fields whose types transformers itself does not hold a file to, or that no file of a draft carries.
UNWANTED = {"transformers_version", "id2label", "label2id", "problem_type"}
SLIDING = "transformers:models/{m}/configuration_{m}.py::{c}.__post_init__::self.sliding_window = "
GEMMA4 = "transformers:models/gemma4/configuration_gemma4.py::Gemma4TextConfig.__post_init__::{}"
POST = {
    "Qwen3Config": {
        "sliding_window": {
            "value": "it if use_sliding_window else null",
            "says": "Qwen3Config drops sliding_window unless use_sliding_window is true",
            "source": SLIDING.format(m="qwen3", c="Qwen3Config"),
        },
        "num_key_value_heads": {
            "value": "num_attention_heads if it is None else it",
            "source": "transformers:models/qwen3/configuration_qwen3.py::Qwen3Config.__post_init__::self.num_key_value_heads",
        },
        "layer_types": {
            "value": "(['sliding_attention' if sliding_window is not None and i >= max_window_layers else"
            " 'full_attention' for i in range(num_hidden_layers)]) if it is None else it",
            "source": "transformers:models/qwen3/configuration_qwen3.py::Qwen3Config.__post_init__::self.layer_types = [",
        },
    },
    "Qwen2Config": {
        "sliding_window": {
            "value": "it if use_sliding_window else null",
            "says": "Qwen2Config drops sliding_window unless use_sliding_window is true",
            "source": SLIDING.format(m="qwen2", c="Qwen2Config"),
        },
        "num_key_value_heads": {
            "value": "num_attention_heads if it is None else it",
            "source": "transformers:models/qwen2/configuration_qwen2.py::Qwen2Config.__post_init__::self.num_key_value_heads",
        },
        "layer_types": {
            "value": "(['sliding_attention' if sliding_window is not None and i >= max_window_layers else"
            " 'full_attention' for i in range(num_hidden_layers)]) if it is None else it",
            "source": "transformers:models/qwen2/configuration_qwen2.py::Qwen2Config.__post_init__::self.layer_types = [",
        },
    },
    "LlamaConfig": {
        "head_dim": {
            "value": "hidden_size // num_attention_heads if it is None else it",
            "source": "transformers:models/llama/configuration_llama.py::LlamaConfig.__post_init__::self.head_dim",
        },
        "num_key_value_heads": {
            "value": "num_attention_heads if it is None else it",
            "source": "transformers:models/llama/configuration_llama.py::LlamaConfig.__post_init__::self.num_key_value_heads",
        },
    },
    "Gemma4TextConfig": {
        "is_causal": {
            "value": "false if use_bidirectional_attention == 'all' else it",
            "says": "Gemma4TextConfig makes every layer bidirectional",
            "source": GEMMA4.format("self.is_causal = False"),
        },
        "layer_types": {
            "value": "(['full_attention' if i == len(it) - 1 else it[i] for i in range(len(it))]) if is_list(it) else"
            " (['full_attention' if (i + 1) % 6 == 0 or i == num_hidden_layers - 1 else 'sliding_attention'"
            " for i in range(num_hidden_layers)])",
            "says": "Gemma4TextConfig makes five layers of six sliding where none are named, and the last one full always",
            "source": GEMMA4.format("sliding_window_pattern"),
        },
        "rope_parameters": {
            "value": "rope_scaling if 'rope_scaling' in written else constant if it is None else it",
            "constant": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
            },
            "says": "Gemma4TextConfig fills in its own rope",
            "source": GEMMA4.format("default_rope_params"),
        },
        "layer_head_dims": {
            "place": "global_head_dim",
            "value": "[numbered(per_layer_config, i).head_dim if has(numbered(per_layer_config, i), 'head_dim') else"
            " head_dim if 'per_layer_config' in written or layer_types[i] != 'full_attention' else"
            " global_head_dim if 'global_head_dim' in written else 512 for i in range(num_hidden_layers)]",
            "says": "Gemma4TextConfig gives full_attention layers global_head_dim, 512 without it",
            "source": GEMMA4.format('kwargs.pop("global_head_dim", 512)'),
        },
        "layer_kv_heads": {
            "place": "num_global_key_value_heads",
            "value": "[numbered(per_layer_config, i).num_key_value_heads if has(numbered(per_layer_config, i),"
            " 'num_key_value_heads') else num_key_value_heads if 'per_layer_config' in written or layer_types[i] !="
            " 'full_attention' or not attention_k_eq_v or num_global_key_value_heads is None else"
            " num_global_key_value_heads for i in range(num_hidden_layers)]",
            "says": "Gemma4TextConfig gives full_attention layers num_global_key_value_heads under attention_k_eq_v",
            "source": GEMMA4.format('kwargs.pop("num_global_key_value_heads", None)'),
        },
    },
}
#: Classes that leave the keys of the older rope spelling where they stand.
UNFOLDED = {"Gemma4TextConfig"}
NAMES = {
    int: "integer",
    float: "float",
    bool: "boolean",
    str: "string",
    type(None): "null",
    dict: "object",
    list: "array",
}


def json_types(annotation: object) -> list[str] | None:
    """Return the JSON types a strict field accepts; None when it cannot be said here."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = [json_types(a) for a in typing.get_args(annotation)]
        return None if any(p is None for p in parts) else sorted({t for p in parts for t in p or []})
    if origin is list:
        inner = json_types(typing.get_args(annotation)[0])
        return [f"array of {inner[0]}"] if inner and len(inner) == 1 else ["array"]
    if origin in (dict, typing.Literal):
        return ["object"] if origin is dict else None
    if isinstance(annotation, type) and issubclass(annotation, dict):
        return ["object"]
    return [NAMES[annotation]] if isinstance(annotation, type) and annotation in NAMES else None


def describe(model_type: str) -> tuple[str, dict[str, object]]:
    """Return the class name and its clause."""
    cls = CONFIG_MAPPING[model_type]
    hints = typing.get_type_hints(cls, localns={"torch": types.SimpleNamespace(dtype=object)})
    module = cls.__module__.removeprefix("transformers.").replace(".", "/")
    keys: dict[str, object] = {}
    for field in dataclasses.fields(cls):
        if field.name in UNWANTED or field.name.startswith("_"):
            continue
        clause: dict[str, object] = {}
        accepted = json_types(hints.get(field.name))
        if accepted:
            clause["type"] = accepted[0] if len(accepted) == 1 else accepted
        if field.default is not dataclasses.MISSING and isinstance(field.default, (int, float, str, bool, type(None))):
            clause["default"] = field.default
        keys[field.name] = clause
    described: dict[str, object] = {
        "source": f"transformers:{module}.py::{cls.__name__}",
        "default_theta": theta
        if isinstance(theta := getattr(cls, "default_theta", 10_000.0), (int, float))
        else dict(theta),
        "keys": keys,
    }
    if getattr(cls, "attribute_map", None):
        described["attribute_map"] = dict(cls.attribute_map)
    if cls.__name__ in POST:
        described["post"] = POST[cls.__name__]
    if cls.__name__ in UNFOLDED:
        described["fold"] = {}
    return cls.__name__, described


def main() -> None:
    """Print the file."""
    classes = {}
    model_types: dict[str, str | None] = dict.fromkeys(sorted(CONFIG_MAPPING_NAMES), "")
    for model_type in WANTED:
        if model_type in CONFIG_MAPPING_NAMES:
            name, described = describe(model_type)
            model_types[model_type] = name
            classes[name] = described
    from transformers.configuration_utils import ALLOWED_ATTN_LAYER_TYPES  # noqa: PLC0415

    print(f"# Generated by scripts/transformers_classes.py from transformers {transformers.__version__}; do not edit.")
    print("# `type`: what the strict field accepts. `default`: what the class fills in for a key that is not there.")
    yaml.safe_dump(
        {
            "layer_types_allowed": list(ALLOWED_ATTN_LAYER_TYPES),
            "model_types": model_types,
            "config_classes": classes,
        },
        sys.stdout,
        sort_keys=False,
        width=110,
        allow_unicode=True,
    )


if __name__ == "__main__":
    main()
