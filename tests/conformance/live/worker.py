"""Run one draft checkpoint through vLLM's own config, build, load and speculator code."""

from __future__ import annotations

import inspect
import json
import logging
import os
import signal
import time
import traceback

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.live import environment, tracking
from conformance.live.probe import probe
from conformance.live.told import (
    Warnings,
    cpu_artifact,
    described,
    oneshot,
    plain,
    resolved_config,
    resolved_model,
    stage,
)


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Ask(NamedTuple):
    """One question to the loader."""

    draft: str
    target: str
    serve: Mapping[str, Any]
    """The speculative config, as vLLM's own flag takes it."""
    target_prefix: str = ""
    """``language_model`` for a target that is multimodal: its layers are named below that."""


def served(case: Mapping[str, Any]) -> dict[str, Any]:
    """How a case of a corpus is served; most cases say it."""
    return dict(case.get("speculative_config") or {"method": "dspark", "num_speculative_tokens": 4})


class _Fork(NamedTuple):
    key: str
    scratch: Path
    started: float


def ask_in_forks(
    asks: Iterable[tuple[str, Ask, Path]], jobs: int, timeout: float = 300
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run each question in a fork of this warmed process, `jobs` at a time; yields records as they come.

    A question is a key, the question, and a directory for its log. Whatever becomes of a fork, there is a record.
    """
    todo = iter(asks)
    running: dict[int, _Fork] = {}
    while True:
        while len(running) < jobs and (question := next(todo, None)) is not None:
            key, ask, scratch = question
            pid = os.fork()
            if pid == 0:
                _child(ask, scratch)
            running[pid] = _Fork(key, scratch, time.monotonic())
        if not running:
            return
        for pid, fork in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            late = time.monotonic() - fork.started > timeout
            if not done and late:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            if done or late:
                del running[pid]
                yield fork.key, _collect(fork, status if done else None)
        time.sleep(0.01)


def _collect(fork: _Fork, status: int | None) -> dict[str, Any]:
    record = fork.scratch / "record.json"
    if record.exists():
        told: dict[str, Any] = json.loads(record.read_text())
    else:
        how = "timeout" if status is None else f"status {status}"
        if status is not None and os.WIFSIGNALED(status):
            how = f"signal {os.WTERMSIG(status)}"
        log = fork.scratch / "log"
        tail = log.read_text(errors="replace")[-400:] if log.exists() else ""
        told = {"verdict": "crashed", "stage": None, "exc": how, "message": tail}
    told["seconds"] = round(time.monotonic() - fork.started, 2)
    return told


def _child(ask: Ask, scratch: Path) -> None:
    log = os.open(scratch / "log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        record = run_case(ask, str(scratch / "rendezvous"))
    except BaseException as error:  # noqa: BLE001 - the parent wants to hear of it
        traceback.print_exc()
        record = {"verdict": "harness-error", "exc": type(error).__name__, "message": str(error)[:400]}
    try:
        (scratch / "record.json").write_text(json.dumps(record, default=str).replace(str(scratch), "<case>"))
    finally:
        os._exit(0)


def run_case(ask: Ask, rendezvous: str) -> dict[str, Any]:
    """One record: the verdict, what was resolved, what the load wrote; see README.md."""
    tracking.forget()
    environment.STUBBED.clear()
    record: dict[str, Any] = {"verdict": "failed", "stage": None}
    warnings = Warnings()
    for name in ("vllm", "", "transformers"):
        logging.getLogger(name).handlers = [warnings]
    run = _Run(ask, record, warnings)
    try:
        run.load(rendezvous)
    except BaseException as error:  # noqa: BLE001 - the verdict is the point
        record.update(verdict="failed", stage=stage(run.step, error), **described(error))
    tracker = tracking.last()
    if tracker is not None and tracker.unwritten is not None:
        record.update(_written(tracker, run.draft, run.target, loaded=record["verdict"] == "loaded"))
    if environment.STUBBED:
        record["quant_kernels_stubbed"] = sorted(set(environment.STUBBED))
    if record["verdict"] == "failed" and cpu_artifact(record.get("message", "")):
        record["cpu_artifact"] = True
    record["warnings"] = [text for text in warnings.out if "Priority not set" not in text][:12]
    return record


class _Run:
    """The steps of serving a draft, in the order of the V2 model runner."""

    def __init__(self, ask: Ask, record: dict[str, Any], warnings: Warnings) -> None:
        self.ask = ask
        self.record = record
        self.warnings = warnings
        self.step = "target-config"
        self.draft: Any = None
        self.target: Any = None

    def load(self, rendezvous: str) -> None:
        from vllm.config import ModelConfig, ParallelConfig
        from vllm.config.speculative import SpeculativeConfig

        target = self.ask.target
        if _speculators(self.ask.draft):
            self.record["oneshot"] = oneshot(self.ask.draft)
        model = ModelConfig(
            model=target,
            tokenizer=target,
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=256,
            enforce_eager=True,
        )
        parallel = ParallelConfig()
        self.step = "speculative-config"
        serve = dict(self.ask.serve)
        speculative = SpeculativeConfig(
            model=self.ask.draft,
            method=serve.pop("method", None),
            target_model_config=model,
            target_parallel_config=parallel,
            **serve,
        )
        self.record.update(resolved_config(speculative))
        self.step = "vllm-config"
        self._build(model, parallel, speculative, rendezvous)

    def _build(self, model: Any, parallel: Any, speculative: Any, rendezvous: str) -> None:
        import torch

        from vllm.config import CacheConfig, DeviceConfig, LoadConfig, VllmConfig, set_current_vllm_config
        from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment
        from vllm.model_executor.model_loader import get_model
        from vllm.v1.worker.gpu import spec_decode
        from vllm.v1.worker.gpu.spec_decode.eagle import eagle3_utils

        config = VllmConfig(
            model_config=model,
            parallel_config=parallel,
            cache_config=CacheConfig(block_size=32),
            device_config=DeviceConfig("cpu"),
            speculative_config=speculative,
            load_config=LoadConfig(load_format="dummy", use_tqdm_on_load=False),
        )
        with set_current_vllm_config(config):
            init_distributed_environment(1, 0, f"file://{rendezvous}", 0, "gloo")
            ensure_model_parallel_initialized(1, 1)
            self.step = "speculator-init"
            make = spec_decode.init_speculator
            speculator = make(*[config, torch.device("cpu"), None][: len(inspect.signature(make).parameters)])
            self.record.update(
                speculator=type(speculator).__name__,
                sample_from_anchor=getattr(speculator, "sample_from_anchor", None),
                num_query_per_req=getattr(speculator, "num_query_per_req", None),
                mask_token_id=plain(getattr(speculator, "parallel_drafting_token_id", None)),
            )
            self.step = "target-load"
            self.target = get_model(vllm_config=config, prefix=self.ask.target_prefix)
            config.load_config.load_format = "auto"
            tracking.forget()
            self.warnings.out.clear()
            self.step = "target-aux-layers"
            self.record["aux_layer_ids"] = plain(eagle3_utils.get_eagle3_aux_layers_from_config(speculative))
            if speculative.method in ("eagle3", "dflash", "dspark"):
                eagle3_utils.set_eagle3_aux_hidden_state_layers(self.target, speculative)
                self.record["target_aux_layers"] = plain(_aux_layers(self.target))
            self.step = "draft-load"
            speculator.load_model(self.target)
            self.draft = speculator.model
            self.step = "inspect"
            self.record.update(resolved_model(self.draft, config))
            self.record.update(verdict="loaded", stage=None)
            try:
                vocabulary = config.model_config.get_vocab_size()
                self.record["probe"] = probe(speculator, self.draft, self.target, vocabulary)
            except Exception as error:  # noqa: BLE001 - a fault of the probe is none of the checkpoint's
                self.record["probe"] = {"harness": described(error)}


def _speculators(draft: str) -> bool:
    try:
        config = json.loads(Path(draft, "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "speculators_config" in config


def _aux_layers(target: Any) -> Any:
    model = target.get_language_model() if hasattr(target, "get_language_model") else target
    return getattr(getattr(model, "model", model), "aux_hidden_state_layers", None)


def _written(tracker: tracking.WriteTracker, draft: Any, target: Any, *, loaded: bool) -> dict[str, Any]:
    """What the load wrote and what it left."""
    none = tracker.unwritten or []
    out: dict[str, Any] = {
        "written": len(tracker.parameters) - len(none),
        "parameters": len(tracker.parameters),
        "checkpoint_tensors": len(tracker.sources),
        "unconsumed": tracker.unconsumed(),
    }
    if not loaded:
        return out | {"unwritten_at_failure": len(none)}
    final = dict(draft.named_parameters(remove_duplicate=False))
    held = set(final) | {name for name, _ in draft.named_buffers(remove_duplicate=False)}
    modules = {name for name, _ in draft.named_modules(remove_duplicate=False)}
    of_target = {id(parameter) for parameter in target.parameters()}
    shared = {name for name, parameter in final.items() if id(parameter) in of_target}
    live = [name for name in none if name in held and name not in shared]
    gone = [name for name in tracker.parameters if name not in held]
    names = [source.name for source in tracker.sources]
    return out | {
        "shared_from_target": sorted(shared),
        "unwritten": sorted(name for name in live if not _placeholder(name)),
        "unwritten_placeholder": sorted(name for name in live if _placeholder(name)),
        "dropped": sorted(name for name in gone if name.rpartition(".")[0] not in modules),
        # never loaded, then folded into something else when the weights were processed
        "unwritten_folded": sorted(
            name for name in gone if name in none and not _placeholder(name) and name.rpartition(".")[0] in modules
        ),
        "partly_written": sorted(part for part in tracker.partly if part.split()[0] not in shared),
        "nan_params": sorted(
            name
            for name, p in final.items()
            if p.is_floating_point() and p.element_size() > 1 and bool(p.isnan().any())
        ),
        "truncated": tracker.truncated(),
        "casts": sorted(tracker.casts),
        "duplicate_names": sorted({name for name in names if names.count(name) > 1}),
    }


def _placeholder(name: str) -> bool:
    """Whether a parameter is meant to be left as it is made."""
    last = name.rsplit(".", 1)[-1]
    return last == "mask_embedding" or (".attn." in name and last.endswith(("_scale", "_zero_point")))
