// SPDX-License-Identifier: Apache-2.0
// Support for GPUs is in a separate library, libzs-cuda.so, loaded on demand: one program runs on machines with and
// without GPUs, and starts quickly. It consists of the sources named cuda*.cpp and *.cu, and uses the program's
// functions.
//
//   zs-train -- load() --> libzs-cuda.so --> libtorch_cuda.so, cuBLAS, cuDNN, NCCL
//      ^                        |
//      +---- zs::Error, device::copy, comm::slice, kernel::plain ...
#pragma once
#include <map>
#include <memory>
#include <string>

#include "device/memory.hpp"
#include "device/operations.hpp"

namespace zs::device::cuda {

/// The library's functions for this folder; other folders get theirs by function().
struct Backend {
  int (*visible_gpus)();
  /// Selects this GPU. Call it once per process, before the first tensor on it.
  void (*use)(int index);
  /// "0000:0f:00.0": ranks of a host with the same bus id share a GPU.
  std::string (*bus_id)(int index);
  Buffer (*allocate)(const Device& device, std::int64_t bytes);
  /// The GPU's total memory in bytes, used or not.
  std::int64_t (*capacity)(const Device& device);
  Statistics (*statistics)(const Device& device);
  void (*reset_peak)(const Device& device);
  std::map<std::string, std::string> (*arithmetic)(const Device& device);
  /// Puts a mark into LibTorch's stream; the seconds from one to a later one, when the stream has passed both.
  std::shared_ptr<void> (*mark)(const Device& device);
  double (*seconds_between)(void* earlier, void* later);
  const Operations* operations;
};

/// True if this machine has a driver for NVIDIA's GPUs.
bool driver_is_there();

/// The library's path for this program, "" if there is none.
std::string library_path();

/// Loads the library; "" on success, else the reason. Repeated calls give the same answer.
std::string load();
bool loaded();

/// REQUIRES: loaded(). Otherwise throws zs::Error: a GPU's memory was requested without one.
const Backend& backend();

/// A function of the library by its name. REQUIRES: loaded(), and the function has this type.
template <typename F>
F* function(const char* name);

/// Its address; throws zs::Error if the library has none (it is of another version of zs).
void* symbol(const char* name);

template <typename F>
F* function(const char* name) {
  return reinterpret_cast<F*>(symbol(name));
}

}  // namespace zs::device::cuda
