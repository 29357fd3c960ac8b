// SPDX-License-Identifier: Apache-2.0
#include "rollout/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace zs::rollout {
namespace {

using OfToken = double (*)(const Token&);

double weight(const Token& token) { return std::exp(-token.d()); }
double size(const Token& token) { return std::fabs(token.d()); }
double of_probabilities(const Token& token) { return std::fabs(std::exp(token.gen) - std::exp(token.train)); }
double third(const Token& token) { return weight(token) - 1 + token.d(); }
double squared(const Token& token) { return std::exp(-2 * token.d()) - 1; }
double reverse(const Token& token) { return std::exp(token.d()) - 1 - token.d(); }

double mean(const Tokens& tokens, OfToken value) {
  double sum = 0;
  for (const Token& token : tokens.counted) sum += value(token);
  return tokens.counted.empty() ? kNan : sum / static_cast<double>(tokens.counted.size());
}

double largest(const Tokens& tokens, OfToken value) {
  double most = 0;
  for (const Token& token : tokens.counted) most = std::max(most, value(token));
  return most;
}

double deviation(const Tokens& tokens, OfToken value) {
  const double middle = mean(tokens, value), count = static_cast<double>(tokens.counted.size());
  double sum = 0;
  for (const Token& token : tokens.counted) sum += std::pow(value(token) - middle, 2);
  return count > 0 ? std::sqrt(sum / std::max(1.0, count - 1)) : kNan;
}

/// The mean over sequences of `after` of the mean over their tokens.
template <double (*after)(double)>
double of_sequences(const Tokens& tokens, OfToken value) {
  std::map<std::size_t, std::pair<double, double>> sums;
  for (const Token& token : tokens.counted) sums[token.sequence].first += value(token), ++sums[token.sequence].second;
  double sum = 0;
  for (const auto& [sequence, pair] : sums) sum += after(pair.first / pair.second);
  return sums.empty() ? kNan : sum / static_cast<double>(sums.size());
}
double same(double x) { return x; }

struct Metric {
  const char *system, *name;
  double (*over)(const Tokens&, OfToken);
  OfToken value;
};

constexpr OfToken kD = [](const Token& t) { return t.d(); };
constexpr Metric kMetrics[] = {
    {"TRL", "sampling/sampling_logp_difference/mean", mean, size},
    {"TRL", "sampling/sampling_logp_difference/max", largest, size},
    {"verl", "training/rollout_probs_diff_mean", mean, of_probabilities},
    {"verl", "training/rollout_probs_diff_max", largest, of_probabilities},
    {"verl", "training/rollout_probs_diff_std", deviation, of_probabilities},
    {"verl", "training/rollout_actor_probs_pearson_corr",
     [](const Tokens& t, OfToken) { return estimate(t.counted).pearson; }, size},
    {"verl", "rollout_corr/kl", mean, kD},
    {"verl", "rollout_corr/k3_kl", mean, third},
    {"verl", "rollout_corr/chi2_token", mean, squared},
    {"verl", "rollout_corr/ppl_ratio", of_sequences<std::exp>, kD},
    {"NeMo-RL", "token_mult_prob_error", mean, [](const Token& t) { return std::exp(size(t)); }},
    {"NeMo-RL", "gen_kl_error", mean, third},
    {"NeMo-RL", "policy_kl_error", mean, reverse},
    {"NeMo-RL", "sampling_importance_ratio", mean, weight},
    {"slime", "train_rollout_logprob_abs_diff", of_sequences<same>, size},
    {"SkyRL", "policy/rollout_train_logprobs_abs_diff_mean", mean, size},
    {"SkyRL", "policy/rollout_train_logprobs_abs_diff_std", deviation, size},
    {"SkyRL", "policy/rollout_train_logprobs_abs_diff_max", largest, size},
    {"prime-rl", "mismatch_kl/all/mean", mean, third},
    {"prime-rl", "mismatch_kl/all/max", largest, third},
    {"torchtitan", "bit_wise/logprob_diff/mean", mean, [](const Token& t) { return -t.d(); }},
    {"torchtitan", "bit_wise/logprob_diff/max", largest, size},
    {"torchtitan", "bit_wise/ratio_tokens_different", mean, [](const Token& t) { return size(t) > 1e-6 ? 1.0 : 0.0; }},
};

}  // namespace

Estimate estimate(const std::vector<Token>& tokens, double beyond) {
  Estimate made;
  made.tokens = tokens.size();
  if (tokens.empty()) return made;
  const auto n = static_cast<double>(tokens.size());
  std::vector<double> sizes;
  double d = 0, dd = 0, w = 0, ww = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (const Token& token : tokens) {
    const double one = token.d(), ratio = weight(token), p = std::exp(token.gen), q = std::exp(token.train);
    sizes.push_back(std::fabs(one));
    made.equal += token.equal();
    made.outside += !(ratio >= 0.9 && ratio <= 1.1);
    d += one, dd += one * one, w += ratio, ww += ratio * ratio;
    x += p, y += q, xx += p * p, yy += q * q, xy += p * q;
    made.mean_abs += std::fabs(one) / n, made.k3 += third(token) / n, made.free += token.free() / n;
  }
  std::ranges::sort(sizes);
  made.p99 = sizes[static_cast<std::size_t>((1 - beyond) * (n - 1))], made.max = sizes.back();
  made.bias = d / n, made.bias_error = std::sqrt(std::max(0.0, dd / n - made.bias * made.bias) / n);
  made.k2 = dd / n / 2, made.outside /= n;
  made.mean_w = w / n, made.w_error = std::sqrt(std::max(0.0, ww / n - made.mean_w * made.mean_w) / n);
  made.ess = ww > 0 ? w * w / n / ww : kNan;
  const double spread = std::sqrt(std::max(0.0, xx - x * x / n) * std::max(0.0, yy - y * y / n));
  made.pearson = made.equal == made.tokens ? 1 : spread > 0 ? (xy - x * y / n) / spread : kNan;
  return made;
}

std::vector<std::pair<std::string, double>> metrics(const Tokens& tokens, const std::string& system) {
  std::vector<std::pair<std::string, double>> values;
  for (const Metric& metric : kMetrics) {
    if (system == metric.system) values.emplace_back(metric.name, metric.over(tokens, metric.value));
  }
  return values;
}

}  // namespace zs::rollout
