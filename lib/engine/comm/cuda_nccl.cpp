// SPDX-License-Identifier: Apache-2.0
// Collectives have a separate stream:
//
//   compute stream   ... backward | event a            wait b | use of the result
//   NCCL's stream             wait a | sends and receives, tree sum | event b
//
// start records a, wait() makes the compute stream wait for b: the host never waits. A thread watches the events b. If
// one does not come within the deadline, the thread names its collective and the ranks that have not reached it, and
// ends the job.
#include "comm/gpu_group.hpp"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/idle.hpp"
#include "comm/agree.hpp"
#include "comm/nodes.hpp"
#include "device/cuda.hpp"
#include "device/operations.hpp"
#include "device/tensor.hpp"
#include "device/tree.hpp"

namespace zs::comm {
namespace {

namespace cuda = device::cuda;

void check(ncclResult_t status, const std::string& what) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw Error("NCCL, " + what + ": " + ncclGetErrorString(status) + " (" + ncclGetLastError(nullptr) + ")");
}

ncclDataType_t type_of(device::Type type) {
  constexpr ncclDataType_t kTypes[] = {ncclUint8, ncclBfloat16, ncclFloat16, ncclFloat32, ncclFloat64};
  return kTypes[static_cast<int>(type)];
}

/// An event that is destroyed with its last owner.
std::shared_ptr<CUevent_st> event() {
  cudaEvent_t made = nullptr;
  cuda::check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "event");
  return {made, [](cudaEvent_t it) { cudaEventDestroy(it); }};
}

/// Sees that collectives end. Its own thread, which calls nothing of NCCL.
class Watch {
 public:
  Watch(double timeout, std::function<void(const std::string&)> late)
      : timeout_(timeout), late_(std::move(late)), thread_([this] { run(); }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void expect(std::shared_ptr<CUevent_st> done, std::string what) {
    const std::lock_guard lock(mutex_);
    expected_.push_back({std::move(done), std::move(what)});
  }

 private:
  struct Expected {
    std::shared_ptr<CUevent_st> done;
    std::string what;
  };
  double timeout_;
  std::function<void(const std::string&)> late_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Expected> expected_;
  bool ends_ = false;
  std::thread thread_;

  void run() {
    Idle idle;  // since a collective ended, or none was under way
    std::unique_lock lock(mutex_);
    while (!ends_) {
      bool ended = expected_.empty();
      while (!expected_.empty() && cudaEventQuery(expected_.front().done.get()) != cudaErrorNotReady) {
        expected_.pop_front();
        ended = true;
      }
      if (ended) idle.restart();
      if (idle.seconds() > timeout_ && !expected_.empty()) {
        const std::string what = expected_.front().what;
        expected_.clear();
        lock.unlock();
        late_(what);
        lock.lock();
      }
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
  }
};

/// A collective under way, and the memory it uses.
class Started final : public Pending {
 public:
  Started(std::shared_ptr<CUevent_st> done, device::Buffer scratch)
      : done_(std::move(done)), scratch_(std::move(scratch)) {}
  void wait() override {
    cuda::check(cudaStreamWaitEvent(cuda::stream(), done_.get()), "collective");
    scratch_.reset();  // its memory is used again in the order of the compute stream, which waits from here on
  }
  bool test() override { return cudaEventQuery(done_.get()) == cudaSuccess; }

 private:
  std::shared_ptr<CUevent_st> done_;
  device::Buffer scratch_;
};

class NcclGroup final : public GpuGroup {
 public:
  /// `node`: ranks_of_node(*host).
  NcclGroup(std::unique_ptr<Group> host, const device::Device& device, const Options& options, int node, bool repeat)
      : GpuGroup(std::move(host), device),
        options_(options),
        repeat_(repeat),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, static_cast<c10::DeviceIndex>(device.index))) {
    if (size() == 1) return;
    // Slices go from point to point, and 16 MiB of them 10 % faster in pieces of half of NCCL's size; a user's stays.
    ::setenv("NCCL_P2P_NVL_CHUNKSIZE", "262144", /*overwrite=*/0);
    ncclUniqueId id{};
    if (rank() == 0) check(ncclGetUniqueId(&id), "start");
    const std::string first = broadcast(*host_, std::string(id.internal, sizeof id.internal), 0, "NCCL's unique id");
    std::memcpy(id.internal, first.data(), sizeof id.internal);
    check(ncclCommInitRank(&comm_, size(), id, rank()), "start of " + std::to_string(size()) + " ranks");
    if (node > 0) nodes_ = Nodes::of(*this, node);
    const std::string where = "rank " + std::to_string(rank()) + " on " + this->host(rank());
    watch_ = std::make_unique<Watch>(options.timeout, [this, where, options](const std::string& what) {
      // The host's thread may wait for the GPU for ever, so only this thread can report it.
      std::fprintf(stderr, "zs: %s: %s has not ended within %g s: another rank is late, stopped or dead\n",
                   where.c_str(), what.c_str(), options.timeout);
      std::fflush(stderr);
      host_->abort();
    });
  }
  ~NcclGroup() override {
    watch_.reset();
    nodes_.reset();
    if (comm_) ncclCommDestroy(comm_);
  }

  using Group::reduce_scatter;
  Work reduce_scatter(const Summands& summands, const device::View& mine, const std::string& what) override {
    const bool one_each = summands.addends.sums.size() == 1 && summands.addends.most() == 1 &&
                          summands.addends.count() == static_cast<std::size_t>(size());
    if (!repeat_ && one_each && size() > 1 && summands.count % size() == 0)
      return reduce_scatter_in_any_order(summands.terms.front(), mine, what);
    if (nodes_) {
      const c10::cuda::CUDAStreamGuard guard(begin());
      nodes_->reduce_scatter(summands, mine, what);
      return end({}, what);
    }
    // Slices of the other ranks, and this rank's own where they are.
    const Slice part = slice(summands.count, rank(), size());
    const auto others = static_cast<std::int64_t>(summands.addends.count() - summands.terms.size());
    device::Buffer scratch = device::allocate(device_, others * part.size() * device::size(summands.type));
    const c10::cuda::CUDAStreamGuard guard(begin());
    std::vector<device::View> terms;
    if (size() > 1) check(ncclGroupStart(), what);
    std::int64_t used = 0;
    for (int peer = 0; peer < size(); ++peer) {
      const Slice theirs = slice(summands.count, peer, size());
      for (const device::View& term : summands.terms) {
        const device::View slice_of_term = term.part(theirs.begin, theirs.end);
        if (peer == rank())
          terms.push_back(slice_of_term);
        else
          send(slice_of_term, peer, what);
      }
      if (peer == rank()) continue;
      for (std::size_t i = 0; i < summands.addends.terms[static_cast<std::size_t>(peer)].size(); ++i) {
        terms.push_back(scratch.view(summands.type, others * part.size()).part(used, used + part.size()));
        used += part.size();
        receive(terms.back(), peer, what);
      }
    }
    if (size() > 1) check(ncclGroupEnd(), what);
    device::tree_sums(summands.addends, terms, parts_of_sums(mine, summands.addends.sums.size(), part, part));
    return end(std::move(scratch), what);
  }

  Work all_gather_coalesced(std::span<const Gathered> gathers, const std::string& what) override {
    const c10::cuda::CUDAStreamGuard guard(begin());
    // NCCL's own where every slice is as long; else each rank sends each its slice.
    const auto even = [&](const Gathered& one) { return size() > 1 && one.full.count % size() == 0; };
    for (const Gathered& one : gathers) {
      const Slice local = slice(one.full.count, rank(), size());
      if (!even(one)) device::copy(one.full.part(local.begin, local.end), one.mine);
    }
    if (size() == 1) return end({}, what);
    check(ncclGroupStart(), what);
    for (const Gathered& one : gathers) {
      if (even(one)) {
        check(ncclAllGather(one.mine.data, one.full.data, static_cast<std::size_t>(one.mine.count),
                            type_of(one.mine.type), comm_, cuda::stream()),
              what);
      }
      for (int peer = 0; peer < size(); ++peer) {
        if (peer == rank()) continue;
        if (even(one)) {
          count(one.mine.bytes(), peer);
          continue;
        }
        const Slice theirs = slice(one.full.count, peer, size());
        send(one.mine, peer, what);
        receive(one.full.part(theirs.begin, theirs.end), peer, what);
      }
    }
    check(ncclGroupEnd(), what);
    return end({}, what);
  }

  using Group::all_to_all;
  Work all_to_all(std::span<const device::View> to, std::span<const device::View> from,
                  const std::string& what) override {
    require_parts(*this, to, from, what);
    const c10::cuda::CUDAStreamGuard guard(begin());
    device::copy(from[static_cast<std::size_t>(rank())], to[static_cast<std::size_t>(rank())]);
    if (size() == 1) return end({}, what);
    check(ncclGroupStart(), what);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      send(to[static_cast<std::size_t>(peer)], peer, what);
      receive(from[static_cast<std::size_t>(peer)], peer, what);
    }
    check(ncclGroupEnd(), what);
    return end({}, what);
  }

  std::unique_ptr<Group> split(int colour, const std::string& what) override {
    return nccl(host_->split(colour, what), device_, options_, repeat_);
  }
  std::int64_t bytes_sent() const override { return sent_ + (nodes_ ? nodes_->bytes_sent() : 0); }
  std::int64_t bytes_between_nodes() const override {
    return between_nodes_ + (nodes_ ? nodes_->bytes_between_nodes() : 0);
  }
  std::int64_t collectives() const override { return collectives_; }

 private:
  Options options_;
  bool repeat_;
  c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
  std::unique_ptr<Nodes> nodes_;  // of a job on several nodes
  std::unique_ptr<Watch> watch_;
  std::int64_t sent_ = 0, between_nodes_ = 0, collectives_ = 0;

  void count(std::int64_t bytes, int to) {
    sent_ += bytes;
    if (host(to) != host(rank())) between_nodes_ += bytes;
  }
  /// NCCL's stream; it waits for all work given to the compute stream so far.
  c10::cuda::CUDAStream begin() {
    ++collectives_;
    const auto before = event();
    cuda::check(cudaEventRecord(before.get(), cuda::stream()), "collective");
    cuda::check(cudaStreamWaitEvent(stream_, before.get()), "collective");
    return stream_;
  }
  Work end(device::Buffer scratch, const std::string& what) {
    auto done = event();
    cuda::check(cudaEventRecord(done.get(), stream_), "collective");
    if (watch_) watch_->expect(done, what);
    return std::make_unique<Started>(std::move(done), std::move(scratch));
  }

  Work reduce_scatter_in_any_order(const device::View& full, const device::View& mine, const std::string& what) {
    const bool widens = full.type != mine.type;
    device::Buffer scratch = device::allocate(device_, widens ? mine.count * device::size(full.type) : 0);
    const c10::cuda::CUDAStreamGuard guard(begin());
    const device::View sum = widens ? scratch.view(full.type, mine.count) : mine;
    check(ncclReduceScatter(full.data, sum.data, static_cast<std::size_t>(sum.count), type_of(sum.type), ncclSum, comm_,
                            cuda::stream()),
          what);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) count(sum.bytes(), peer);
    }
    if (widens) device::tree_sum({&sum, 1}, mine);
    return end(std::move(scratch), what);
  }

  void send(const device::View& what_goes, int to, const std::string& what) {
    if (what_goes.count == 0) return;
    check(ncclSend(what_goes.data, static_cast<std::size_t>(what_goes.count), type_of(what_goes.type), to, comm_,
                   cuda::stream()),
          what);
    count(what_goes.bytes(), to);
  }
  void receive(const device::View& into, int from, const std::string& what) {
    if (into.count == 0) return;
    check(ncclRecv(into.data, static_cast<std::size_t>(into.count), type_of(into.type), from, comm_, cuda::stream()),
          what);
  }
};

}  // namespace

/// Owns `host`; the caller owns what comes back.
extern "C" Group* zs_cuda_nccl(Group* host, const device::Device& device, const Options& options, int node,
                               bool repeat) {
  return new NcclGroup(std::unique_ptr<Group>(host), device, options, node, repeat);
}

}  // namespace zs::comm
