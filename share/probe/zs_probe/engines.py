# SPDX-License-Identifier: Apache-2.0
"""The weights that vLLM holds, on each of its workers.

    llm = vllm.LLM(..., worker_extension_cls="zs_probe.engines.Worker")
    llm.collective_rpc("zs_weights", args=(version,))        after each sync; version: that of zs_probe.weights() in the trainer

The workers write to $ZS_PROBE/generator, a file each. An engine in the same process needs no extension: vllm_weights(llm, version).
TRL's engine is recorded by itself.
"""
import functools
import types

from .say import guarded, say
from .synced import weights


class Worker:
    """Methods that vLLM adds to each worker."""

    def zs_weights(self, version, folder=None):
        rank, count = _of_tensors(self)
        weights(self.model_runner.model, version, folder, "generator", tp=(rank, count), rank=self.rank, world_size=_workers(self))


def vllm_weights(llm, version, folder=None):
    """Records what an engine holds as this version."""
    worker = getattr(getattr(llm.llm_engine, "model_executor", None), "driver_worker", None)
    if hasattr(worker, "model_runner"):
        weights(worker.model_runner.model, version, folder, "generator")
    else:  # in processes of its own
        llm.collective_rpc("zs_weights", args=(version, folder))


def _of_tensors(worker):
    """(rank, ranks) of tensor parallelism."""
    size = worker.parallel_config.tensor_parallel_size
    return worker.rank % size, size


def _workers(worker):
    return worker.parallel_config.world_size


def watch_engine(module):
    """TRL's vLLM: the weights of both sides of a sync. What the engine holds is read when it has generated with it."""
    kind = getattr(module, "VLLMGeneration", None)
    if kind is None:
        return
    sync = kind.sync_weights

    @functools.wraps(sync)
    def sync_weights(self, *args, **kwargs):
        result = sync(self, *args, **kwargs)
        guarded(_synced)(self)
        return result

    kind.sync_weights = sync_weights


def _synced(generation):
    number = generation.zs_syncs = getattr(generation, "zs_syncs", -1) + 1
    if number >= 8 and number & (number - 1):  # the first ones, then each power of two
        return
    weights(generation.model, number)
    engine = getattr(generation, "llm", None)
    if engine is None:
        say("the weights of vLLM's server are not recorded: start it with the worker extension zs_probe.engines.Worker, and call zs_weights there")
        return
    if not hasattr(engine, "zs_pending"):
        generate = engine.generate

        @functools.wraps(generate)
        def generating(*args, **kwargs):
            result = generate(*args, **kwargs)
            number, engine.zs_pending = engine.zs_pending, None
            if number is not None:
                guarded(vllm_weights)(engine, number)
            return result

        engine.generate = generating
    engine.zs_pending = number


def watch_llm(llm, watch):
    """An engine in the trainer's own process, before TRL 1: its log-probabilities stand in what it generates."""
    made = getattr(llm, "generate", None)
    if made is None:
        return

    @functools.wraps(made)
    def generate(prompts, sampling_params=None, *args, **kwargs):
        outputs = made(prompts, sampling_params, *args, **kwargs)
        guarded(_drew)(watch, outputs, sampling_params)
        return outputs

    llm.generate = generate


def watch_client(client, watch):
    """The same of a server, whose answers have them."""
    for name in ("generate", "chat"):
        made = getattr(client, name, None)
        if made is not None:
            setattr(client, name, _answering(made, watch))


def _answering(made, watch):
    @functools.wraps(made)
    def answer(*args, **kwargs):
        found = made(*args, **kwargs)
        guarded(_answered)(watch, found, types.SimpleNamespace(**kwargs))
        return found
    return answer


def _answered(watch, found, settings):
    drawn, prompts = found["completion_ids"], found["prompt_ids"]
    watch.flush()
    for number, (tokens, values) in enumerate(zip(drawn, found.get("logprobs") or ())):
        prompt = list(prompts[number * len(prompts) // len(drawn)])
        watch.wait(number, prompt + tokens, len(prompt), {"gen": [one[0] if isinstance(one, list) else one for one in values]}, settings)


def _drew(watch, outputs, settings):
    watch.flush()
    number = 0
    for one in outputs:
        prompt = list(one.prompt_token_ids)
        for drawn in one.outputs:
            tokens = list(drawn.token_ids)
            if drawn.logprobs:
                watch.wait(number, prompt + tokens, len(prompt), {"gen": [float(at[token].logprob) for token, at in zip(tokens, drawn.logprobs)]}, settings)
            number += 1
