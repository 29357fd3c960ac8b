// SPDX-License-Identifier: Apache-2.0
// GPUs are served by a library of their own, libzs-cuda.so, which is loaded when a GPU is asked for: one program runs
// on machines with and without GPUs, and starts as fast as before. It is made of the sources named cuda*.cpp and *.cu,
// and uses the program's own functions.
//
//   zs-train -- load() --> libzs-cuda.so --> libtorch_cuda.so, cuBLAS, cuDNN, NCCL
//      ^                        |
//      +---- zs::Error, device::copy, comm::slice, kernel::plain ...
#pragma once
#include <map>
#include <string>

#include "device/memory.hpp"
#include "device/operations.hpp"

namespace zs::device::cuda {

/// What the library gives this folder; other folders have functions of their own in it, see function().
struct Backend {
  int (*visible_gpus)();
  /// Computes on this GPU from now on. Once in a process, before the first tensor there.
  void (*use)(int index);
  /// "0000:0f:00.0": two ranks of a host with one bus id share a GPU.
  std::string (*bus_id)(int index);
  Buffer (*allocate)(const Device& device, std::int64_t bytes);
  /// All that the GPU has, whoever uses it.
  std::int64_t (*capacity)(const Device& device);
  Statistics (*statistics)(const Device& device);
  void (*reset_peak)(const Device& device);
  std::map<std::string, std::string> (*arithmetic)(const Device& device);
  const Operations* operations;
};

/// True if this machine has a driver of NVIDIA's GPUs.
bool driver_is_there();

/// Where it is for this program, "" if there is none.
std::string library_path();

/// Loads the library; "" if it is there, else why it is not. Again: the same answer.
std::string load();
bool loaded();

/// REQUIRES: loaded(). Throws zs::Error where it is not: a GPU's memory was asked for without one.
const Backend& backend();

/// A function of the library by its name. REQUIRES: loaded(), and that the function has this type.
template <typename F>
F* function(const char* name);

/// Its address; throws zs::Error where the library has none (it is of another version of zs).
void* symbol(const char* name);

template <typename F>
F* function(const char* name) {
  return reinterpret_cast<F*>(symbol(name));
}

}  // namespace zs::device::cuda
