#!/usr/bin/env python3
"""Makes table.bin, vocabulary.txt and expected.json from the PyPI package wordllama.

    python3 -m venv v && v/bin/pip install wordllama==0.4.0.post1
    v/bin/python make.py

table.bin: for each of 32000 tokens 128 signed bytes, then for each token one little-endian f32: what its
bytes are to be multiplied by. vocabulary.txt: the tokens from 259 on, a line each (0 to 2 are special, 3 to
258 are single bytes). expected.json: what the original says about some texts; the tests compare.
"""

import json
import pathlib

import numpy as np
import wordllama
from safetensors.numpy import load_file
from tokenizers import Tokenizer

DIMENSIONS = 128
HERE = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(wordllama.__file__).parent
TOKENIZER = PACKAGE / "tokenizers/l2_supercat_tokenizer_config.json"
WEIGHTS = PACKAGE / "weights/l2_supercat_256.safetensors"


def check_order(model):
    """The rule by which our tokenizer knows merges without a list of them."""
    ids = model["vocab"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    named = [token for token, number in ids.items() if number >= 259]
    possible = {
        (t[:i], t[i:]) for t in named for i in range(1, len(t)) if t[:i] in ids and t[i:] in ids
    }
    assert possible == set(merges)
    spaces = lambda pair: set("".join(pair)) == {"▁"}
    words = [pair for pair in merges if not spaces(pair)]
    assert words == sorted(words, key=lambda p: (ids[p[0] + p[1]], ids[p[0]], ids[p[1]]))
    assert not any("▁" in token.lstrip("▁") for token in named)


def main():
    model = json.loads(TOKENIZER.read_text())["model"]
    check_order(model)
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    assert len(tokens) == 32000 and not any("\n" in token for token in tokens[259:])
    (HERE / "vocabulary.txt").write_text("\n".join(tokens[259:]) + "\n")

    full = load_file(WEIGHTS)["embedding.weight"].astype(np.float32)
    cut = full[:, :DIMENSIONS]
    scale = np.abs(cut).max(axis=1, keepdims=True) / 127
    scale[scale == 0] = 1
    rows = np.clip(np.rint(cut / scale), -127, 127).astype(np.int8)
    (HERE / "table.bin").write_bytes(rows.tobytes() + scale.astype("<f4").tobytes())

    texts = json.loads((HERE / "texts.json").read_text())
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    ids = lambda text: tokenizer.encode(" ".join(text.split()), add_special_tokens=False).ids

    def similarity(table):
        def vector(text):
            pooled = table[ids(text)].mean(axis=0)
            return pooled / np.linalg.norm(pooled)

        pairs = np.array([vector(a) for a, _ in texts["pairs"]])
        others = np.array([vector(b) for _, b in texts["pairs"]])
        return pairs @ others.T

    original = similarity(full)
    ours = similarity(rows * scale)
    for name, table in [("original", original), ("ours", ours)]:
        print(name, "finds", (table.argmax(axis=1) == np.arange(len(table))).sum(), "of", len(table))
    print("correlation", np.corrcoef(original.ravel(), ours.ravel())[0, 1])
    expected = {
        "tokens": [[text, ids(text)] for text in texts["tokens"]],
        "pairs": texts["pairs"],
        "similarity": [[round(float(x), 4) for x in row] for row in original],
        "cut": [[round(float(x), 4) for x in row] for row in ours],
    }
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=0) + "\n")


main()
