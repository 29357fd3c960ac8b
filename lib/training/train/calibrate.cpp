// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate.hpp"

#include "base/number.hpp"
#include "device/memory.hpp"
#include "device/tensor.hpp"
#include "kernel/calibration.hpp"
#include "train/trainer.hpp"

namespace zs::train {

std::string calibrate(comm::Group& group, Settings settings) {
  settings.max_steps = 2;
  settings.num_epochs = settings.eval_steps = settings.save_steps = settings.digest_every = 0;
  settings.eval = settings.save_final = false;
  settings.checkpoint = "";
  double rate = 0;
  const std::vector<kernel::Measured> found = kernel::measure_products([&] {
    Trainer(group, settings).run("", {}, {});
    rate = kernel::measure_rate(device::type_of(settings.engine.dtype));
  });
  const auto facts = device::arithmetic(group.device());
  kernel::Calibration table = kernel::Calibration::read(facts.at("gpu"), facts.at("cublas"));
  table.rates[matrix_format(settings)] = rate;
  std::string text;
  const auto micro = [](double seconds) { return to_rounded_text(seconds * 1e6, 4); };
  for (const kernel::Measured& product : found) {
    table.products[product.product] = product.algorithm;
    text += micro(product.first) + " us first, " + micro(product.best) + " us fastest: " + product.product + "\n";
  }
  const std::string path = table.write();
  return text + matrix_format(settings) + ": " + to_rounded_text(rate * 1e-12, 4) + " TFLOP/s\n" + path + ": " +
         to_text(static_cast<std::int64_t>(table.products.size())) + " products, " + table.hash() + "\n";
}

}  // namespace zs::train
