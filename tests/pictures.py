#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures to train on, with what every Python has: pictures.py DIR CLASSES IMAGES [SEED] writes DIR/classN/NN.png."""
import random
import struct
import sys
import zlib
from pathlib import Path

WIDTH, HEIGHT = 40, 36


def png(rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def main():
    root, classes, images = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(" ".join(sys.argv[4:]))
    for label in range(classes):
        folder = root / f"class{label}"
        folder.mkdir(parents=True, exist_ok=True)
        colour = [200 if (label + 1) >> channel & 1 else 60 for channel in range(3)]  # of its class, with noise
        for number in range(images):
            rows = [bytes(min(255, max(0, colour[i % 3] + chance.randrange(-60, 60))) for i in range(3 * WIDTH)) for _ in range(HEIGHT)]
            (folder / f"{number:02}.png").write_bytes(png(rows))


main()
