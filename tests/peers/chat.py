#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates beside transformers: chat.py TEMPLATES TOKENIZE FOLDER [MODEL...]

TEMPLATES is a folder with *.jinja, TOKENIZE the tool zs-tokenize, FOLDER takes what is made: a tokenizer.json for each template,
and, with each MODEL as tokenizer.model, one as of Llama and one with its blanks of old. Of every template and conversation the ids are those of apply_chat_template, or both refuse it. Where a template has {% generation %} blocks, so is the mask of what the
assistant says. Of NAME.jinja beside NAME_training.jinja, which has such blocks and writes the same text, what zs finds without
blocks is compared with them: equal, or but for what the template writes around what is said. Status 1 where something differs.

chat.py record MODEL FOLDER: prints for tests/chat.bats a line of JSON for each folder of MODEL, with its files and transformers' ids
and masks of some conversations.
"""
import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import sentencepiece
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.convert_slow_tokenizer import generate_merges

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


def folder_of_model(template, folder, model, legacy):
    """A folder as Llama's and Mistral's: what the template needs and the model has not is added, some with its white space."""
    folder.mkdir(parents=True)
    shutil.copy(model, folder / "tokenizer.model")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    added = {}
    for word in words_of(template) + ["<unk>", "<s>", "</s>"]:
        known = pieces.piece_to_id(word)
        place = known if pieces.id_to_piece(known) == word else len(pieces) + sum(int(each) >= len(pieces) for each in added)
        added[str(place)] = {"content": word, "single_word": False, "lstrip": False, "rstrip": word.startswith("<|end"), "normalized": legacy and place >= len(pieces), "special": True}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                                                              "legacy": legacy, "added_tokens_decoder": added}))
    (folder / "chat_template.jinja").write_text(template)
    made = transformers.AutoTokenizer.from_pretrained(folder)
    # Of a folder without tokenizer.json transformers merges in the order of ids, SentencePiece and every published tokenizer.json by
    # score: other ids where there are several blanks.
    vocabulary = {pieces.id_to_piece(i): i for i in range(len(pieces))}
    merges = generate_merges(vocabulary, [(piece, pieces.get_score(i)) for piece, i in vocabulary.items()])
    made.backend_tokenizer.model = models.BPE(vocab=vocabulary, merges=merges, fuse_unk=True, byte_fallback=True)
    return made


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


RECORDED = """{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>
{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|end|>{% endgeneration %}{% else %}{{ m.content }}<|end|>{% endif %}
{% endfor %}{# <|user|> <|assistant|> <|system|> #}"""


def record(model, root):
    for legacy in (False, True):
        folder = root / str(legacy)
        tokenizer = folder_of_model(RECORDED, folder, model, legacy)
        made = []
        for which in ("two", "system", "letters", "blanks", "same"):
            ids, mask = theirs(tokenizer, CONVERSATIONS[which], True)
            made.append({**CONVERSATIONS[which], "ids": ids, "mask": mask})
        print(json.dumps({"config": json.loads((folder / "tokenizer_config.json").read_text()), "template": RECORDED, "conversations": made}))


def main():
    if sys.argv[1] == "record":
        return record(sys.argv[2], Path(sys.argv[3]))
    templates, tokenize, root = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    transformers.logging.set_verbosity_error()
    counts = {"templates": 0, "by tokenizer.model": 0, "texts": 0, "refused": 0, "masks": 0, "masks but for parts of a last character": 0, "found": 0, "around": 0, "undecided": 0}
    wrong = []
    masks = {}
    kinds = {"": None} | {f", {Path(model).name}{', legacy' * legacy}": (model, legacy) for model in sys.argv[4:] for legacy in (False, True)}
    for path, kind in ((path, kind) for path in sorted(templates.glob("*.jinja")) for kind in kinds):
        template, name = path.read_text(), path.stem + kind
        blocks = re.search(r"\{%-?\s*generation", template) is not None
        folder = root / name
        tokenizer = folder_of_model(template, folder, *kinds[kind]) if kinds[kind] else tokenizer_of(template, folder)
        counts["templates"] += not kind
        counts["by tokenizer.model"] += bool(kind)
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
                parts = {i for i, token in enumerate(ids) if "\ufffd" in tokenizer.decode([token]) or tokenizer.convert_ids_to_tokens(token).startswith("<0x")}
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
