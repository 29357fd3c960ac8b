// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/sheet.hpp"
#include "device/memory.hpp"
#include "device/tensor.hpp"
#include "kernel/calibration.hpp"
#include "setup/describe.hpp"
#include "train/trainer.hpp"

namespace zs::train {

std::string roofline(std::vector<kernel::Measured> products, std::int64_t steps, double rate) {
  const auto calls = [&](const kernel::Measured& product) {
    return static_cast<double>(product.calls) / static_cast<double>(steps);
  };
  std::ranges::stable_sort(products, std::ranges::greater(),
                           [&](const kernel::Measured& product) { return calls(product) * product.best; });
  Sheet sheet{{"ms a step", "calls", "first (us)", "fastest (us)", "TFLOP/s", "of the rate", "product"}, {}};
  const auto micro = [](double seconds) { return to_rounded_text(seconds * 1e6, 4); };
  const auto row = [&](double seconds, double operations, std::vector<std::string> calls, const std::string& name) {
    std::vector<std::string> cells = {to_rounded_text(seconds * 1e3, 4)};
    cells.insert(cells.end(), calls.begin(), calls.end());
    const double reached = operations / seconds;
    for (const std::string& cell : {to_rounded_text(reached * 1e-12, 4), to_rounded_text(reached / rate, 3), name})
      cells.push_back(cell);
    sheet.rows.push_back(std::move(cells));
  };
  double seconds = 0, operations = 0;
  for (const kernel::Measured& product : products) {
    row(calls(product) * product.best, calls(product) * product.operations,
        {to_text(calls(product)), micro(product.first), micro(product.best)}, product.product);
    seconds += calls(product) * product.best, operations += calls(product) * product.operations;
  }
  if (seconds > 0) row(seconds, operations, {"", "", ""}, "all");
  return aligned(sheet);
}

std::string calibrate(comm::Group& group, Settings settings) {
  constexpr std::int64_t kSteps = 2;
  settings.max_steps = kSteps;
  settings.num_epochs = settings.eval_steps = settings.save_steps = settings.digest_every = 0;
  settings.eval = settings.save_final = false;
  settings.checkpoint = "";
  std::vector<kernel::Measured> found = kernel::measure_products([&] { Trainer(group, settings).run("", {}, {}); });
  double rate = 0;
  const std::vector<kernel::Measured> large =
      kernel::measure_products([&] { rate = kernel::measure_rate(device::type_of(settings.engine.dtype)); });
  const std::string text = roofline(found, kSteps, rate);
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
