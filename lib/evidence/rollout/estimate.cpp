// SPDX-License-Identifier: Apache-2.0
#include "rollout/estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

namespace zs::rollout {
namespace {

double mean_of(const std::vector<Token>& tokens, const std::function<double(const Token&)>& value) {
  double sum = 0;
  for (const Token& token : tokens) sum += value(token);
  return tokens.empty() ? kNan : sum / static_cast<double>(tokens.size());
}

double largest(const std::vector<Token>& tokens, const std::function<double(const Token&)>& value) {
  double most = 0;
  for (const Token& token : tokens) most = std::max(most, value(token));
  return most;
}

double weight(const Token& token) { return std::exp(-token.d()); }
double size(const Token& token) { return std::fabs(token.d()); }
double of_probabilities(const Token& token) { return std::fabs(std::exp(token.gen) - std::exp(token.train)); }
double third(const Token& token) { return weight(token) - 1 + token.d(); }

double deviation(const std::vector<Token>& tokens, double (*value)(const Token&)) {
  const double mean = mean_of(tokens, value), count = static_cast<double>(tokens.size());
  return std::sqrt(mean_of(tokens, [&](const Token& t) { return std::pow(value(t) - mean, 2); }) * count /
                   std::max(1.0, count - 1));
}

/// The mean over sequences of the mean over their tokens, of `value`; `after` is applied to each sequence's mean.
double over_sequences(const Tokens& tokens, double (*value)(const Token&), double (*after)(double)) {
  std::map<std::size_t, std::pair<double, double>> sums;
  for (const Token& token : tokens.all) sums[token.sequence].first += value(token), ++sums[token.sequence].second;
  double sum = 0;
  for (const auto& [sequence, pair] : sums) sum += after(pair.first / pair.second);
  return sums.empty() ? kNan : sum / static_cast<double>(sums.size());
}

double same(double x) { return x; }

struct Metric {
  const char *system, *name;
  double (*value)(const Tokens&);
};

constexpr std::array kMetrics{
    Metric{"TRL", "sampling/sampling_logp_difference/mean", [](const Tokens& t) { return mean_of(t.all, size); }},
    Metric{"TRL", "sampling/sampling_logp_difference/max", [](const Tokens& t) { return largest(t.all, size); }},
    Metric{"verl", "training/rollout_probs_diff_mean",
           [](const Tokens& t) { return mean_of(t.all, of_probabilities); }},
    Metric{"verl", "training/rollout_probs_diff_max", [](const Tokens& t) { return largest(t.all, of_probabilities); }},
    Metric{"verl", "training/rollout_probs_diff_std",
           [](const Tokens& t) { return deviation(t.all, of_probabilities); }},
    Metric{"verl", "training/rollout_actor_probs_pearson_corr",
           [](const Tokens& t) { return estimate(t.all).pearson; }},
    Metric{"verl", "rollout_corr/kl", [](const Tokens& t) { return estimate(t.all).bias; }},
    Metric{"verl", "rollout_corr/k3_kl", [](const Tokens& t) { return mean_of(t.all, third); }},
    Metric{"verl", "rollout_corr/chi2_token",
           [](const Tokens& t) { return mean_of(t.all, [](const Token& x) { return std::exp(-2 * x.d()); }) - 1; }},
    Metric{"verl", "rollout_corr/ppl_ratio",
           [](const Tokens& t) {
             return over_sequences(
                 t, [](const Token& x) { return x.d(); }, std::exp);
           }},
    Metric{"NeMo-RL", "token_mult_prob_error",
           [](const Tokens& t) { return mean_of(t.all, [](const Token& x) { return std::exp(size(x)); }); }},
    Metric{"NeMo-RL", "gen_kl_error", [](const Tokens& t) { return mean_of(t.all, third); }},
    Metric{"NeMo-RL", "policy_kl_error",
           [](const Tokens& t) { return mean_of(t.all, [](const Token& x) { return std::exp(x.d()) - 1 - x.d(); }); }},
    Metric{"NeMo-RL", "sampling_importance_ratio", [](const Tokens& t) { return mean_of(t.all, weight); }},
    Metric{"slime", "train_rollout_logprob_abs_diff", [](const Tokens& t) { return over_sequences(t, size, same); }},
    Metric{"SkyRL", "policy/rollout_train_logprobs_abs_diff_mean",
           [](const Tokens& t) { return mean_of(t.all, size); }},
    Metric{"SkyRL", "policy/rollout_train_logprobs_abs_diff_std",
           [](const Tokens& t) { return deviation(t.all, size); }},
    Metric{"SkyRL", "policy/rollout_train_logprobs_abs_diff_max", [](const Tokens& t) { return largest(t.all, size); }},
    Metric{"prime-rl", "mismatch_kl/all/mean", [](const Tokens& t) { return mean_of(t.all, third); }},
    Metric{"prime-rl", "mismatch_kl/all/max", [](const Tokens& t) { return largest(t.all, third); }},
    Metric{"torchtitan", "bit_wise/logprob_diff/mean",
           [](const Tokens& t) { return mean_of(t.all, [](const Token& x) { return -x.d(); }); }},
    Metric{"torchtitan", "bit_wise/logprob_diff/max", [](const Tokens& t) { return largest(t.all, size); }},
    Metric{"torchtitan", "bit_wise/ratio_tokens_different",
           [](const Tokens& t) { return mean_of(t.all, [](const Token& x) { return size(x) > 1e-6 ? 1.0 : 0.0; }); }},
};

}  // namespace

Estimate estimate(const std::vector<Token>& tokens) {
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
    made.mean_abs += std::fabs(one) / n, made.k3 += third(token) / n;
  }
  std::ranges::sort(sizes);
  const auto at = [&](double share) { return sizes[static_cast<std::size_t>(share * (n - 1))]; };
  made.median = at(0.5), made.p99 = at(0.99), made.max = sizes.back();
  made.bias = d / n, made.bias_error = std::sqrt(std::max(0.0, dd / n - made.bias * made.bias) / n);
  made.k2 = dd / n / 2, made.outside /= n;
  made.mean_w = w / n, made.w_error = std::sqrt(std::max(0.0, ww / n - made.mean_w * made.mean_w) / n);
  made.ess = ww > 0 ? w * w / n / ww : kNan;
  const double spread = std::sqrt(std::max(0.0, xx - x * x / n) * std::max(0.0, yy - y * y / n));
  made.pearson = made.equal == made.tokens ? 1 : spread > 0 ? (xy - x * y / n) / spread : kNan;
  return made;
}

std::vector<std::pair<std::string, double>> metrics(const Tokens& tokens, const std::string& system) {
  std::vector<std::pair<std::string, double>> all;
  for (const Metric& metric : kMetrics) {
    if (system == metric.system) all.emplace_back(metric.name, metric.value(tokens));
  }
  return all;
}

}  // namespace zs::rollout
