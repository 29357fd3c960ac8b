#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchvision's loader over the images that bench/images makes: images.py make FOLDER, images.py FOLDER SIZE BATCH WORKERS IMAGES."""
import random
import sys
import time
from pathlib import Path


def make(folder):
    """400 photographs' worth: 512 x 384 pixels of smooth colours and noise, JPEG of quality 90."""
    from PIL import Image, ImageFilter
    chance = random.Random(1)
    for number in range(400):
        small = Image.frombytes("RGB", (64, 48), chance.randbytes(64 * 48 * 3))
        image = small.resize((512, 384), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(1))
        path = Path(folder) / f"class{number % 4}"
        path.mkdir(parents=True, exist_ok=True)
        image.save(path / f"{number}.jpg", quality=90)


def measure(folder, size, batch, workers, images):
    import torch
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                transforms.Normalize([0.5] * 3, [0.5] * 3)])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, steps), batch_size=batch, shuffle=True, num_workers=workers,
                                         persistent_workers=True, drop_last=True)
    for _ in loader:  # the workers start, and the files are in memory
        pass
    begin, read = time.perf_counter(), 0
    while read < images:
        for pixels, _ in loader:
            read += len(pixels)
    print(f"{read / (time.perf_counter() - begin):.1f}")


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    measure(sys.argv[1], *map(int, sys.argv[2:]))
