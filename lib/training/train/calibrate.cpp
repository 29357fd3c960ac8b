// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/sheet.hpp"
#include "device/memory.hpp"
#include "device/tensor.hpp"
#include "kernel/calibration.hpp"
#include "train/trainer.hpp"

namespace zs::train {
namespace {

constexpr std::int64_t kSteps = 2;

/// The roofline: what takes the longest in a step first, each beside the rate of a large product.
std::string roofline(std::vector<kernel::Measured> all, double rate) {
  const auto in_a_step = [](const kernel::Measured& its) { return static_cast<double>(its.calls) / kSteps * its.best; };
  std::ranges::stable_sort(all, std::ranges::greater(), in_a_step);
  Sheet sheet{{"ms a step", "calls", "first (us)", "fastest (us)", "TFLOP/s", "of the rate", "product"}, {}};
  const auto row = [&](double seconds, double operations, const std::string& calls, const std::string& first,
                       const std::string& best, const std::string& name) {
    sheet.rows.push_back({to_rounded_text(seconds * 1e3, 4), calls, first, best, to_rounded_text(operations * 1e-12, 4),
                          to_rounded_text(operations / rate, 3), name});
  };
  double seconds = 0, operations = 0;
  for (const kernel::Measured& its : all) {
    row(in_a_step(its), its.operations / its.best, to_text(its.calls / kSteps), to_rounded_text(its.first * 1e6, 4),
        to_rounded_text(its.best * 1e6, 4), its.product);
    seconds += in_a_step(its), operations += static_cast<double>(its.calls) / kSteps * its.operations;
  }
  row(seconds, operations / seconds, "", "", "", "all");
  return aligned(sheet);
}

}  // namespace

std::string calibrate(comm::Group& group, Settings settings) {
  settings.max_steps = kSteps;
  settings.num_epochs = settings.eval_steps = settings.save_steps = settings.digest_every = 0;
  settings.eval = settings.save_final = false;
  settings.checkpoint = "";
  std::vector<kernel::Measured> found = kernel::measure_products([&] { Trainer(group, settings).run("", {}, {}); });
  double rate = 0;
  const std::vector<kernel::Measured> large =
      kernel::measure_products([&] { rate = kernel::measure_rate(device::type_of(settings.engine.dtype)); });
  const std::string text = roofline(found, rate);
  const auto facts = device::arithmetic(group.device());
  kernel::Calibration table = kernel::Calibration::read(facts.at("gpu"), facts.at("cublas"));
  table.rates[matrix_format(settings)] = rate;
  found.insert(found.end(), large.begin(), large.end());
  for (const kernel::Measured& product : found) {
    if (!product.algorithm.empty()) table.products[product.product] = product.algorithm;
  }
  const std::string path = table.write();
  return text + matrix_format(settings) + ": " + to_rounded_text(rate * 1e-12, 4) + " TFLOP/s\n" + path + ": " +
         to_text(static_cast<std::int64_t>(table.products.size())) + " products, " + table.hash() + "\n";
}

}  // namespace zs::train
