// SPDX-License-Identifier: Apache-2.0
// A GPU's collectives through the host's memory: for several ranks on one GPU, which NCCL rejects, and for machines
// without NCCL. The ranks' processors compute the sums; their additions give the same bits as a GPU.
//
//   reduce_scatter   GPU full -> host full | the host group's reduce-scatter | host mine -> GPU mine, in wait()
//   all_gather       GPU mine -> host mine | the host group's all-gather     | host full -> GPU full, in wait()
//   all_to_all       the same, for the data to each rank and from each rank
#include "comm/gpu_group.hpp"

#include <map>

#include "comm/nodes.hpp"
#include "device/backend.hpp"
#include "device/tensor.hpp"

namespace zs::comm {
namespace {

/// The operands and results of a collective on the GPU.
struct Operand {
  device::View from, to;
};

/// A collective of the host's group, and where its results go.
class Staged final : public Pending {
 public:
  void add(Group& host, const Operand& operand) {
    One one{host.allocate(operand.from.bytes()), host.allocate(operand.to.bytes()), operand};
    device::copy(one.source(), operand.from);  // waits for the GPU
    all_.push_back(std::move(one));
  }
  device::View source(std::size_t i) const { return all_[i].source(); }
  device::View result(std::size_t i) const { return all_[i].result(); }
  void start(Work work) { work_ = std::move(work); }
  void wait() override {
    work_->wait();
    for (const One& one : std::exchange(all_, {})) device::copy(one.operand.to, one.result());  // once
  }
  bool test() override { return work_->test(); }

 private:
  struct One {
    device::Buffer in, out;
    Operand operand;
    device::View source() const { return in.view(operand.from.type, operand.from.count); }
    device::View result() const { return out.view(operand.to.type, operand.to.count); }
  };
  std::vector<One> all_;
  Work work_;
};

class StagedGroup final : public GpuGroup {
 public:
  using GpuGroup::GpuGroup;

  using Group::reduce_scatter;
  Work reduce_scatter(const Summands& summands, const device::View& mine, const std::string& what) override {
    auto staged = std::make_unique<Staged>();
    // The result is with the first; what goes back to the others is nothing.
    const auto none = [](const device::View& view) { return view.part(0, 0); };
    if (summands.terms.empty()) staged->add(*host_, {none(mine), mine});
    for (std::size_t i = 0; i < summands.terms.size(); ++i)
      staged->add(*host_, {summands.terms[i], i == 0 ? mine : none(mine)});
    Summands on_host = summands;
    for (std::size_t i = 0; i < summands.terms.size(); ++i) on_host.terms[i] = staged->source(i);
    staged->start(host_->reduce_scatter(on_host, staged->result(0), what));
    return staged;
  }
  Work all_gather_coalesced(std::span<const Gathered> gathers, const std::string& what) override {
    auto staged = std::make_unique<Staged>();
    for (const Gathered& one : gathers) staged->add(*host_, {one.mine, one.full});
    std::vector<Gathered> on_host;
    for (std::size_t i = 0; i < gathers.size(); ++i) on_host.push_back({staged->source(i), staged->result(i)});
    staged->start(host_->all_gather_coalesced(on_host, what));
    return staged;
  }
  using Group::all_to_all;
  Work all_to_all(std::span<const device::View> to, std::span<const device::View> from,
                  const std::string& what) override {
    require_parts(*host_, to, from, what);
    auto staged = std::make_unique<Staged>();
    std::vector<device::View> sources, results;
    for (std::size_t i = 0; i < to.size(); ++i) {
      staged->add(*host_, {to[i], from[i]});
      sources.push_back(staged->source(i)), results.push_back(staged->result(i));
    }
    staged->start(host_->all_to_all(sources, results, what));
    return staged;
  }
  std::unique_ptr<Group> split(int colour, const std::string& what) override {
    return staged(host_->split(colour, what), device_);
  }
  std::int64_t bytes_sent() const override { return host_->bytes_sent(); }
  std::int64_t bytes_between_nodes() const override { return host_->bytes_between_nodes(); }
  std::int64_t collectives() const override { return host_->collectives(); }
};

}  // namespace

std::string shared_gpu(Group& host, const device::Device& device) {
  const std::string mine = host.host(host.rank()) + " " + device::cuda::backend().bus_id(device.index);
  const auto gpus = host.all_gather_object(mine, "GPUs of the ranks");
  std::map<std::string, int> taken;
  for (int rank = 0; rank < host.size(); ++rank) {
    const auto [place, fresh] = taken.emplace(gpus[static_cast<std::size_t>(rank)], rank);
    if (!fresh)
      return "ranks " + std::to_string(place->second) + " and " + std::to_string(rank) + " share the GPU " +
             place->first;
  }
  return "";
}

std::unique_ptr<Group> nccl(std::unique_ptr<Group> host, const device::Device& device, const Options& options,
                            bool repeat) {
  const auto make =
      device::cuda::function<Group*(Group*, const device::Device&, const Options&, int, bool)>("zs_cuda_nccl");
  const int node = ranks_of_node(*host);
  return std::unique_ptr<Group>(make(host.release(), device, options, node, repeat));
}

std::unique_ptr<Group> staged(std::unique_ptr<Group> host, const device::Device& device) {
  return std::make_unique<StagedGroup>(std::move(host), device);
}

}  // namespace zs::comm
