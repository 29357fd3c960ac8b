#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small images of every kind, and what Pillow makes of them, for lib/formats/image/image_test.cpp.

image.py DIR         images, and for each IMAGE.expected: the bytes of convert("RGB").resize(SIZE, BILINEAR) for all SIZES
"""
import math
import sys
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 37, 23
SIZES = ((37, 23), (10, 7), (64, 31), (37, 5), (9, 23))


def picture():
    image = Image.new("RGB", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            image.putpixel((x, y), (int(127 + 120 * math.sin(x / 3)), (x * 7 + y * 11) % 256, int(127 + 120 * math.cos(y / 2 + x / 9))))
    return image


def main():
    root = Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    rgb = picture()
    alpha = rgb.convert("RGBA")
    alpha.putalpha(rgb.convert("L"))
    rgb.save(root / "rgb.jpg", quality=90)
    rgb.save(root / "progressive.jpg", quality=80, progressive=True, subsampling=0)
    rgb.convert("L").save(root / "grey.jpg")
    rgb.convert("CMYK").save(root / "cmyk.jpg", quality=95, subsampling=0)
    rgb.save(root / "rgb.png")
    alpha.save(root / "rgba.png")
    rgb.convert("L").save(root / "grey.png")
    rgb.convert("1").save(root / "bits.png")
    rgb.quantize(17).save(root / "palette.png", transparency=3)
    for file in sorted([*root.glob("*.jpg"), *root.glob("*.png")]):
        image = Image.open(file).convert("RGB")
        (root / f"{file.name}.expected").write_bytes(b"".join(image.resize(size, Image.Resampling.BILINEAR).tobytes() for size in SIZES))


main()
