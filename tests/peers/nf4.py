# SPDX-License-Identifier: Apache-2.0
# Matrices in 4 bits beside bitsandbytes: `python -P nf4.py FILE` writes tests/data/nf4/matrices.safetensors, what quantize_4bit and
# dequantize_4bit make of several matrices on a processor. A test of zs must get the same bits.
import sys

import torch
from bitsandbytes.functional import dequantize_4bit, quantize_4bit
from safetensors.torch import save_file

torch.manual_seed(2)
rows = torch.randn(3, 256).bfloat16().float()
rows[0, :64], rows[1, 64:128], rows[2, 0] = 0, 1e-30, 100
matrices = {
    "normal": torch.randn(65, 256).bfloat16().float(),  # 260 blocks: two groups of nested scales
    # Not of 32 + 64 n columns: there dequantize_4bit of bitsandbytes 0.50.2 takes scales of other blocks with AVX-512.
    "of_bfloat16": torch.randn(16, 192).bfloat16().float(),
    "with_zeros": rows,
    "in_part": torch.randn(3, 30),  # its last block has 26 numbers
}
# Numbers in the middle between two values, and one bit beside it.
code = quantize_4bit(torch.ones(2, 64), quant_type="nf4")[1].code
middles = (code[:-1] + code[1:]) / 2
sides = torch.cat([middles, *(torch.nextafter(middles, to) for to in (code[1:], code[:-1])), torch.tensor([1.0])])
matrices["middles"] = torch.nn.functional.pad(sides, (0, 64 - sides.numel())).repeat(2, 1) * torch.tensor([[1.0], [3.0]])
found = {}
for name, matrix in matrices.items():
    found[name] = matrix
    for kind in "single", "double":
        codes, state = quantize_4bit(matrix, quant_type="nf4", compress_statistics=kind == "double")
        found[f"{name}.{kind}"] = codes
        for part, tensor in state.as_dict(packed=True).items():
            found[f"{name}.{kind}.{part}"] = tensor
        for dtype in torch.float32, torch.bfloat16:
            state.dtype = dtype
            found[f"{name}.{kind}.{str(dtype).split('.')[1]}"] = dequantize_4bit(codes, state)
save_file({name: tensor.contiguous().clone() for name, tensor in found.items()}, sys.argv[1])
