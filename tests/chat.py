#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes, in the current folder: chat, a tokenizer of bytes and three special tokens, with a template that ends each message by one
of them; talk.jsonl, 60 conversations; shared.jsonl, the same in ShareGPT's form."""
import json
import os

os.makedirs("chat")
stay = [*range(33, 127), *range(161, 173), *range(174, 256)]
letters, more = {}, 256
for b in range(256):
    letters[b] = chr(b) if b in stay else chr(more)
    more += b not in stay
vocab = {letters[b]: b for b in range(256)}
added = [{"id": 256 + i, "content": c, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
         for i, c in enumerate(["<|begin|>", "<|end|>", "<|from|>"])]
bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": bytes_, "post_processor": None,
           "decoder": bytes_, "model": {"type": "BPE", "vocab": vocab, "merges": []}}, open("chat/tokenizer.json", "w"))
json.dump({"bos_token": "<|begin|>", "eos_token": "<|end|>", "chat_template":
  "{{ bos_token }}{% for m in messages %}{% if m.role not in [\"system\", \"user\", \"assistant\"] %}{{ raise_exception(\"no role \" + m.role) }}{% endif %}"
  "<|from|>{{ m.role }}\n{{ m.content }}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}<|from|>assistant\n{% endif %}"}, open("chat/tokenizer_config.json", "w"))
with open("talk.jsonl", "w") as out:
    for i in range(60):
        said = [("user", "ask %d" % i), ("assistant", "say " + "word " * (i * 7 % 5))] * (1 + i % 3)
        out.write(json.dumps({"messages": [{"role": r, "content": c} for r, c in said]}) + "\n")
with open("shared.jsonl", "w") as out:
    for line in open("talk.jsonl"):
        names = {"user": "human", "assistant": "gpt"}
        out.write(json.dumps({"conversations": [{"from": names[m["role"]], "value": m["content"]} for m in json.loads(line)["messages"]]}) + "\n")
