# SPDX-License-Identifier: Apache-2.0
"""Compares zs-tokenize with the Python packages tokenizers and sentencepiece, id by id, both ways.

token.py compare ZS_TOKENIZE FOLDER   trains tokenizers on 10 MB of mixed text in FOLDER and compares over all of it
token.py record FOLDER                makes the small tokenizers, the text and the ids that tests/zs-tokenize.bats has
token.py speed ZS_TOKENIZE FOLDER     times both on every processor, in turn
"""
import glob
import json
import os
import random
import statistics
import subprocess
import sys
import time

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF),
           (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
           (0x1F300, 0x1FAFF), (0x2000, 0x206F), (0x2100, 0x24FF), (0x30, 0x39), (0x20000, 0x2A6DF),
           (0x31350, 0x323AF), (0x300, 0x36F), (0xFB00, 0xFB4F), (0xFF00, 0xFFEF), (0x660, 0x669), (0x10000, 0x1FFFF)]
BETWEEN = [" ", "  ", "\n", "\n\n", "\r\n", "\t", ".", ", ", "，", "。", "\u00a0", "\u3000", "\u180e", "\u2028", "'s", "'S",
           "'ſ", "'ll", "'LL ", "'Re", "don't", "I'm ", "   \n  ", "\x85", "\x0b", "\x0c", "\x00", "\x7f", "\x1b[0m",
           "<|endoftext|>", " <|endoftext|> ", "<|x|>", "  <|x|>\n", "!!", "...", "_", "-", "\u200d", "\ufe0f", "👩\u200d💻",
           "1234567", "3.14", "½", "Ⅻ", "١٢٣"]


def mixed(size, seed):
    """Words of all scripts, numbers, white space, control characters and emoji."""
    draw, text, bytes_ = random.Random(seed), [], 0
    while bytes_ < size:
        low, high = draw.choice(SCRIPTS)
        word = "".join(chr(draw.randint(low, high)) for _ in range(draw.choice([1, 1, 2, 3, 4, 5, 6, 8, 12, 30])))
        text.append(word + draw.choice(BETWEEN))
        bytes_ += len(text[-1].encode())
    return "".join(text).encode()


def broken(text, count, seed):
    """The same with bytes replaced, and with ends of characters that never come."""
    draw, bytes_ = random.Random(seed), bytearray(text)
    for _ in range(count):
        bytes_[draw.randrange(len(bytes_))] = draw.randrange(256)
    return bytes(bytes_) + b"\xf0\x9f\x98 \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 \xe2\x82"


def files(pattern, most):
    found = b""
    for path in sorted(glob.glob(pattern)):
        with open(path, "rb") as file:
            text = file.read(200_000)
        if b"\0" not in text:
            found += text
        if len(found) > most:
            break
    return found


def corpus():
    """10 MB: licences, C and Python of this machine, all scripts, every character, runs of one, random bytes."""
    every = "".join(CHARACTERS[:400_000]) + "".join(
        f"a{c} " for c in CHARACTERS if (ord(c) < 0x33000 or ord(c) > 0xE0000) and ord(c) < 0xE0200)
    code = files("/usr/share/common-licenses/*", 1e6) + files("/usr/include/*.h", 1e6) + files("/usr/lib/python3*/*.py", 1.2e6)
    runs = b" " * 3000 + b"x" + b"\n" * 500 + b"a" * 5000 + b"1" * 700 + b"!" * 900 + "é".encode() * 4000
    text = code + mixed(max(4_200_000, 7_000_000 - len(code)), 14) + every.encode() + random.Random(15).randbytes(300_000) + runs
    return broken(text, 20_000, 16)


def byte_level(expression, texts, size, ignore_merges=False, first=()):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if expression is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        steps = [*first, pre_tokenizers.Split(Regex(expression), "isolated"),
                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    special = ["<|endoftext|>"] if expression is None else []
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False))
    return tokenizer


def with_added(tokenizer):
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                  for t in ("<|begin_of_text|>", "<|endoftext|>")])
    tokenizer.add_tokens([AddedToken("<|x|>", lstrip=True, rstrip=True, normalized=True),
                          AddedToken("don", single_word=True, normalized=False),
                          AddedToken("3.14", single_word=True, rstrip=True, normalized=True)])
    return tokenizer


def pieces(folder, kind, texts, size, **options):
    with open(f"{folder}/{kind}.txt", "w") as file:
        file.write("\n".join(line[:2000] for text in texts for line in text.replace("\0", " ").split("\n")))
    sentencepiece.SentencePieceTrainer.train(
        input=f"{folder}/{kind}.txt", model_prefix=f"{folder}/{kind}", vocab_size=size, model_type=kind, byte_fallback=True,
        character_coverage=0.985, hard_vocab_limit=False, input_sentence_size=20_000, minloglevel=2, **options)
    os.remove(f"{folder}/{kind}.txt")
    os.remove(f"{folder}/{kind}.vocab")


def tokenizers(folder, text, size, size_of_pieces, rule):
    """Trains one of each kind, as files of `folder`; Unigram with a normalization rule."""
    texts = [text[i:i + 20_000] for i in range(0, len(text) * 6 // 10, 20_000)]
    gpt2 = byte_level(None, texts, size)
    gpt2.save(f"{folder}/gpt2.json", pretty=False)
    gpt2.model.save(folder)
    llama3 = with_added(byte_level(LLAMA3, texts, size + size // 2, ignore_merges=True))
    llama3.save(f"{folder}/llama3.json", pretty=False)
    pieces(folder, "unigram", texts, size_of_pieces, normalization_rule_name=rule)
    pieces(folder, "bpe", texts, size_of_pieces, normalization_rule_name="identity", split_digits=True,
           allow_whitespace_only_pieces=True, remove_extra_whitespaces=False)
    return texts


def expected(path, text):
    """The ids of the Python package for a text, and the text of the ids."""
    if path.endswith(".model"):
        model = sentencepiece.SentencePieceProcessor(model_file=path)
        ids = model.encode(text)
        return ids, model.decode(ids)
    if path.endswith(".json") and "vocab" not in path:
        tokenizer = Tokenizer.from_file(path)
    else:
        tokenizer = Tokenizer(models.BPE.from_file(path, path.replace("vocab.json", "merges.txt")))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens(["<|endoftext|>"])
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return ids, tokenizer.decode(ids, skip_special_tokens=False)


def compare(tool, folder):
    bytes_ = corpus()
    with open(f"{folder}/text", "wb") as file:
        file.write(bytes_)
    text = bytes_.decode(errors="replace")
    texts = tokenizers(folder, text, 20_000, 30_000, "nmt_nfkc")
    with open(f"{folder}/llama3.json") as file:
        old = json.load(file)
    old["model"]["merges"] = [" ".join(pair) for pair in old["model"]["merges"]]
    with open(f"{folder}/llama3-old.json", "w") as file:
        json.dump(old, file)
    with open(f"{folder}/composed.json", "w") as file:  # as Qwen's
        json.dump({**old, "normalizer": {"type": "NFC"}}, file)
    byte_level(DEEPSEEK, texts, 8000, first=[
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"), pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Split("/", "merged_with_next"), pre_tokenizers.Split(Regex("[一-龥]+"), "merged_with_previous"),
    ]).save(f"{folder}/steps.json")
    failed = 0
    for name in ("gpt2.json", "vocab.json", "llama3.json", "llama3-old.json", "composed.json", "steps.json", "unigram.model", "bpe.model"):
        path = f"{folder}/{name}"
        ids, back = expected(path, text)
        printed = subprocess.run([tool, "-t", path, f"{folder}/text"], check=True, capture_output=True, text=True).stdout
        found = [int(word) for word in printed.split()]
        decoded = subprocess.run([tool, "-t", path, "--decode", "--format", "ids"], input=printed.encode(), check=True,
                                 capture_output=True).stdout
        if path.endswith(".json"):
            decoded = decoded.decode(errors="replace").encode()
        right = found == ids and decoded == back.encode()
        failed += not right
        print(f"{'ok' if right else 'NOT OK'}: {name}: {len(bytes_)} bytes, {len(ids)} ids"
              f"{'' if found == ids else ', other ids'}{'' if decoded == back.encode() else ', other text'}", flush=True)
    return failed


def record(folder):
    text = files("/usr/share/common-licenses/GPL-*", 2e5).decode() + mixed(3000, 1).decode()
    tokenizers(folder, text, 1000, 900, "identity")
    sample = broken(files("/usr/share/common-licenses/BSD", 1)[:1500] + mixed(5000, 2), 40, 3)
    with open(f"{folder}/sample.txt", "wb") as file:
        file.write(sample)
    for name in ("gpt2.json", "llama3.json", "unigram.model", "bpe.model"):
        ids, _ = expected(f"{folder}/{name}", sample.decode(errors="replace"))
        with open(f"{folder}/{name}.ids", "w") as file:
            file.write(" ".join(map(str, ids)) + "\n")


def speed(tool, folder):
    """Documents of natural text and code; MB/s by each in turn, and the median of the ratios."""
    draw, text = random.Random(4), files("/usr/share/common-licenses/*", 1e6) + files("/usr/include/*.h", 1e6) + files("/usr/lib/python3*/*.py", 3e6)
    lines = text.decode(errors="replace").split("\n")
    documents = ["\n".join(lines[i:i + 60]) for i in range(0, len(lines), 60)] * 8
    draw.shuffle(documents)
    megabytes = sum(len(d.encode()) for d in documents) / 1e6
    with open(f"{folder}/documents.jsonl", "w") as file:
        file.writelines(json.dumps({"text": d}) + "\n" for d in documents)
    with open(f"{folder}/one.txt", "w") as file:
        file.write("\n".join(documents))
    texts = documents[:: 40]
    byte_level(None, texts, 20_000).save(f"{folder}/gpt2.json")
    byte_level(LLAMA3, texts, 30_000, ignore_merges=True).save(f"{folder}/llama3.json")
    print(f"{megabytes:.0f} MB, {os.cpu_count()} processors, tokenizers {__import__('tokenizers').__version__}")
    print("tokenizer  input            zs MB/s  tokenizers MB/s  ratio")
    for name in ("gpt2", "llama3"):
        tokenizer = Tokenizer.from_file(f"{folder}/{name}.json")
        for source in ("documents.jsonl", "one.txt"):
            rows = []
            for _ in range(5):
                # Whole processes on our side: reading, JSON, the tokenizer's own loading and writing included.
                begin = time.perf_counter()
                subprocess.run([tool, "-t", f"{folder}/{name}.json", f"{folder}/{source}", "--no_separator", "-o",
                                f"{folder}/out.bin"], check=True)
                ours = time.perf_counter() - begin
                begin = time.perf_counter()
                if source == "one.txt":  # one text is the work of one thread there; documents are its best case
                    with open(f"{folder}/{source}") as file:
                        ids = [tokenizer.encode(file.read(), add_special_tokens=False).ids]
                else:
                    ids = [e.ids for e in tokenizer.encode_batch_fast(documents, add_special_tokens=False)]
                theirs = time.perf_counter() - begin
                rows.append((megabytes / ours, megabytes / theirs, theirs / ours))
            middle = [statistics.median(column) for column in zip(*rows)]
            print(f"{name:9}  {source:15}  {middle[0]:7.1f}  {middle[1]:15.1f}  {middle[2]:5.2f}", flush=True)


if __name__ == "__main__":
    {"compare": compare, "record": record, "speed": speed}[sys.argv[1]](*sys.argv[2:]) and sys.exit(1)
