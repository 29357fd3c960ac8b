// SPDX-License-Identifier: Apache-2.0
#include "optimizer/optimizer.hpp"

#include <algorithm>
#include <array>

#include "base/words.hpp"

namespace zs::optimizer {
namespace {

constexpr std::array kAdam = {Usual{"weight_decay", "0"}};
constexpr std::array kSgd = {Usual{"weight_decay", "0"}, Usual{"momentum", "0"}, Usual{"nesterov", "false"}};
constexpr std::array kLion = {Usual{"beta2", "0.99"}, Usual{"weight_decay", "0"}};
constexpr std::array kMuon = {Usual{"weight_decay", "0.1"}, Usual{"momentum", "0.95"}, Usual{"nesterov", "true"},
                              Usual{"ns_steps", "5"}, Usual{"adjust_lr", "original"}};

// clang-format off
constexpr auto kAll = std::to_array<Description>({
    {Kind::adamw, "adamw", "AdamW", "torch.optim.AdamW", "AdamW", "exp_avg exp_avg_sq", "beta1 beta2 epsilon weight_decay correct_bias use_torch_adam", {}},
    {Kind::adam, "adam", "Adam", "torch.optim.Adam", "Adam", "exp_avg exp_avg_sq", "beta1 beta2 epsilon weight_decay correct_bias", kAdam},
    {Kind::sgd, "sgd", "SGD", "torch.optim.SGD", "SGD", "momentum_buffer", "weight_decay momentum nesterov", kSgd},
    {Kind::lion, "lion", "Lion", "", "Lion", "exp_avg", "beta1 beta2 weight_decay", kLion},
    {Kind::muon, "muon", "Muon", "torch.optim.Muon", "Muon", "exp_avg exp_avg_sq momentum_buffer", "beta1 beta2 epsilon weight_decay correct_bias momentum nesterov ns_steps adjust_lr adamw_learning_rate", kMuon},
    {Kind::adamw_8bit, "adamw_8bit", "8-bit AdamW", "", "", "exp_avg exp_avg_sq", "beta1 beta2 epsilon weight_decay correct_bias", {}},
});
// clang-format on

constexpr std::array<std::string_view, 3> kStates = {"exp_avg", "exp_avg_sq", "momentum_buffer"};

}  // namespace

std::span<const Description> all() { return kAll; }

const Description& description(Kind kind) { return kAll[static_cast<std::size_t>(kind)]; }

const Description* named(std::string_view name) {
  const auto* const found = std::ranges::find_if(kAll, [&](const Description& one) { return one.name == name; });
  return found == kAll.end() ? nullptr : &*found;
}

const Description* named_by_deepspeed(std::string_view type) {
  const auto* const found = std::ranges::find_if(
      kAll, [&](const Description& one) { return !type.empty() && lower(type) == lower(one.deepspeed); });
  return found == kAll.end() ? nullptr : &*found;
}

bool reads(const Description& one, std::string_view setting) {
  const std::vector<std::string_view> words = words_of(one.reads);
  return std::ranges::find(words, setting) != words.end();
}

std::string readers(std::string_view setting) {
  std::string text;
  for (const Description& one : kAll) {
    if (reads(one, setting)) text += (text.empty() ? "" : ", ") + std::string(one.title);
  }
  return text;
}

std::string_view usual(std::string_view name, std::string_view key) {
  const Description* const one = named(name);
  constexpr std::string_view kSection = "training.";
  if (!one || !key.starts_with(kSection)) return "";
  for (const Usual& row : one->usual) {
    if (row.setting == key.substr(kSection.size())) return row.value;
  }
  return "";
}

Rule rule(const Settings& settings, bool matrix_of_block, std::int64_t numel) {
  switch (settings.kind) {
    case Kind::adamw:
      return Rule::adamw;
    case Kind::adam:
      return Rule::adam;
    case Kind::sgd:
      return settings.momentum > 0 ? Rule::sgd_momentum : Rule::sgd;
    case Kind::lion:
      return Rule::lion;
    case Kind::muon:
      return matrix_of_block ? Rule::muon : Rule::adamw;
    case Kind::adamw_8bit:
      return numel >= kLeastCoded ? Rule::adamw_8bit : Rule::adamw;
  }
  return Rule::adamw;
}

std::span<const std::string_view> states(Rule rule) {
  const std::span<const std::string_view> states(kStates);
  switch (rule) {
    case Rule::adamw:
    case Rule::adam:
    case Rule::adamw_8bit:
      return states.first(2);
    case Rule::sgd:
      return {};
    case Rule::lion:
      return states.first(1);
    case Rule::sgd_momentum:
    case Rule::muon:
      return states.subspan(2);
  }
  return {};
}

std::vector<std::string_view> kept_names(const Description& one) { return words_of(one.keeps); }

}  // namespace zs::optimizer
