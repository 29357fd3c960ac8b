#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates beside transformers: chat.py TEMPLATES TOKENIZE FOLDER

TEMPLATES is a folder with *.jinja, TOKENIZE the tool zs-tokenize, FOLDER takes what is made. Of every template and conversation
the ids are those of apply_chat_template, or both refuse it. Where a template has {% generation %} blocks, so is the mask of what the
assistant says. Of NAME.jinja beside NAME_training.jinja, which has such blocks and writes the same text, what zs finds without
blocks is compared with them: equal, or but for what the template writes around what is said. Status 1 where something differs.
"""
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HELLO = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "Hi! How can I help?"}]
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds two numbers.",
                                         "parameters": {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}, "required": ["a", "b"]}}}
CONVERSATIONS = {
    "two": {"messages": HELLO},
    "four": {"messages": HELLO + [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "It is 4."}]},
    "system": {"messages": [{"role": "system", "content": "Be brief."}, *HELLO]},
    "letters": {"messages": [{"role": "user", "content": "Sag \u201eja\u201c \U0001f600"}, {"role": "assistant", "content": "J\u00e4, \u4f60\u597d!\nZwei Zeilen, \u05e9\u05dc\u05d5\u05dd"}]},
    "blanks": {"messages": [{"role": "user", "content": "  padded \n"}, {"role": "assistant", "content": " 4 \n"}]},
    "same": {"messages": [{"role": "user", "content": "yes"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "yes"},
                          {"role": "assistant", "content": "yes"}]},
    "question": {"messages": [{"role": "user", "content": "unanswered"}]},
    "tools": {"messages": [{"role": "user", "content": "Add 1 and 2."}, {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "id": "call00001", "function": {"name": "add", "arguments": {"b": 2, "a": 1}}}]},
        {"role": "tool", "name": "add", "tool_call_id": "call00001", "content": "3"}, {"role": "assistant", "content": "It is 3."}], "tools": [TOOL]},
    "order": {"messages": [HELLO[1], HELLO[0]]},
}


def words_of(template):
    """What looks like a special token in a template."""
    found = set(re.findall(r"<[|｜][^<>\s'\"{}]{1,40}[|｜]>|</?(?:s|bos|eos|start_of_turn|end_of_turn|start_of_image)>|\[/?[A-Z_]{2,30}\]|<\|?turn\|?>", template))
    return sorted(found | {"<bos>", "<eos>"})


def tokenizer_of(template, folder):
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    text = json.dumps(list(CONVERSATIONS.values()), ensure_ascii=False) + template
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=700, show_progress=False, special_tokens=words_of(template),
                                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>")
    fast.chat_template = template
    fast.save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


def theirs(tokenizer, asked, mask):
    try:
        made = tokenizer.apply_chat_template(asked["messages"], tools=asked.get("tools"), tokenize=True, return_dict=True, return_assistant_tokens_mask=mask)
    except Exception as error:
        return None, str(error)
    return list(made["input_ids"]), list(made["assistant_masks"]) if mask else None


def conversations_of(path):
    """Of each conversation of a token file its ids, and whether a loss is of each."""
    ids = path.read_bytes()[1024:]
    marks = path.with_suffix(".mask").read_bytes()
    count = struct.unpack("<Q", marks[16:24])[0]
    assert marks.startswith(b"zs marks 1\n") and len(marks) == 40 + count and len(ids) == 2 * count, path
    all_ids, all_marks, made = struct.unpack(f"<{count}H", ids), marks[40:], []
    for token, mark in zip(all_ids, all_marks):
        if mark & 2:
            made.append(([], []))
        made[-1][0].append(token)
        made[-1][1].append(mark & 1)
    return made


def ours(tokenize, folder, conversations, loss_on):
    """Of each conversation the ids and marks, or None and what zs says."""
    data, out = folder / "data.jsonl", folder / "out.bin"
    data.write_text("".join(json.dumps(asked, ensure_ascii=False) + "\n" for asked in conversations))
    done = subprocess.run([tokenize, "--tokenizer", str(folder), "--loss_on", loss_on, "--output", str(out), str(data)], capture_output=True, text=True)
    if done.returncode == 0:
        return conversations_of(out)
    if len(conversations) == 1:
        return [(None, done.stderr.strip())]
    return [ours(tokenize, folder, [asked], loss_on)[0] for asked in conversations]


def main():
    templates, tokenize, root = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    transformers.logging.set_verbosity_error()
    counts = {"templates": 0, "texts": 0, "refused": 0, "masks": 0, "masks but for parts of a last character": 0, "found": 0, "around": 0, "undecided": 0}
    wrong = []
    masks = {}
    for path in sorted(templates.glob("*.jinja")):
        template, name = path.read_text(), path.stem
        blocks = re.search(r"\{%-?\s*generation", template) is not None
        folder = root / name
        tokenizer = tokenizer_of(template, folder)
        counts["templates"] += 1
        expected = {which: theirs(tokenizer, asked, blocks) for which, asked in CONVERSATIONS.items()}
        made = {}
        for refused in (False, True):
            some = [which for which, (ids, _) in expected.items() if (ids is None) == refused]
            for loss_on in ("all",) if refused else ("all", "assistant"):
                made |= {(which, loss_on): own for which, own in zip(some, ours(tokenize, folder, [CONVERSATIONS[which] for which in some], loss_on) if some else [])}
        for which, (ids, mask) in expected.items():
            own, marks = made[which, "all"]
            if ids is None and own is None:
                counts["refused"] += 1
                continue
            if ids != own:
                wrong.append(f"{name}, {which}: other ids: {mask if ids is None else marks if own is None else ''}")
                continue
            counts["texts"] += 1
            own, marks = made[which, "assistant"]
            masks[name, which] = (ids, marks if own else None)
            if blocks and own is None:
                wrong.append(f"{name}, {which}: no mask: {marks}")
            elif blocks:
                counts["masks"] += marks == mask
                # transformers looks for the token of the last character said, and of a character in several tokens takes the first.
                parts = {i for i, token in enumerate(ids) if "\ufffd" in tokenizer.decode([token])}
                counts["masks but for parts of a last character"] += marks != mask and all(m == o or i in parts for i, (m, o) in enumerate(zip(marks, mask)))
                if any(m != o and i not in parts for i, (m, o) in enumerate(zip(marks, mask))):
                    wrong.append(f"{name}, {which}: another mask")
            elif own is None:
                assert "--loss_on all" in marks, marks
                counts["undecided"] += 1
    text_of = {}
    for (name, which), (ids, marks) in masks.items():
        blocked = f"{name}_training"
        if marks is None or (blocked, which) not in masks:
            continue
        tokenizers = text_of.setdefault(name, [transformers.AutoTokenizer.from_pretrained(root / each) for each in (name, blocked)])
        other_ids, other = masks[blocked, which]
        mine, other_text = tokenizers[0].decode(ids), tokenizers[1].decode(other_ids)
        if mine != other_text:
            continue

        def said(tokenizer, ids, marks):
            return "".join(tokenizer.decode([i]) if mark else "\0" for i, mark in zip(ids, marks))

        a, b = said(tokenizers[0], ids, marks), said(tokenizers[1], other_ids, other)
        counts["found" if re.sub("\0+", "\0", a).split("\0") == re.sub("\0+", "\0", b).split("\0") else "around"] += 1
    print("\n".join(wrong))
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f"(transformers {transformers.__version__})")
    sys.exit(bool(wrong) or counts["templates"] < 20)


main()
