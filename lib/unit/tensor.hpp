// SPDX-License-Identifier: Apache-2.0
// The part of LibTorch that zs uses: tensors and autograd. Precompiled, since it takes seconds to read.
#ifndef ZS_UNIT_TENSOR_HPP  // not #pragma once: a precompiled header is a main file
#define ZS_UNIT_TENSOR_HPP
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#endif
