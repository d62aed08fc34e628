#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/study/softmax_scaling.hpp"

namespace heed {

namespace {

constexpr std::array laws{std::pair{"logits", Law::logits}, std::pair{"gaussian", Law::gaussian}, std::pair{"uniform", Law::uniform},
                          std::pair{"rademacher", Law::rademacher}};

std::optional<std::string> not_whole(std::string const& name, std::vector<double> const& values) {
  if (values.empty()) return name + ": is empty";
  for (double const value : values) {
    if (value != std::floor(value)) return fmt::format("{}: {} is not an integer", name, value);
  }
  return std::nullopt;
}

}  // namespace

Law law_of(std::string const& name) {
  return std::ranges::find(laws, name, [](auto const& law) { return std::string(law.first); })->second;
}

std::vector<Index> integers(std::vector<double> const& values) { return {values.begin(), values.end()}; }

std::vector<Field> SoftmaxScalingSettings::fields() {
  return {
      field(&d_k, "d_k", "widths of queries and keys").in(1, 65536),
      field(&keys, "keys", "numbers of keys that a query attends to").in(2, 4096),
      field(&scale, "scale", "scales of the logits: 1, 1/√d_k, 1/d_k").one_of({"none", "rsqrt", "inverse"}),
      field(&power, "power", "further scales of the logits: d_k^−α for each of these α").in(0, 4),
      field(&distribution, "distribution",
            "distribution of the components of queries and keys, mean 0 and variance 1; logits: iid N(0, d_k) instead of dot products")
          .one_of({"logits", "gaussian", "uniform", "rademacher"}),
      field(&precision, "precision", "a cell is sampled until every relative standard error is at most this").in(1e-4, 1),
      field(&limit, "limit", "largest number of sampled logits per cell").in(1, 1e12),
      field(&quick, "quick",
            "a preview in ten seconds: every second d_k, three numbers of keys and one distribution of the lists above, errors up to 5 %"),
      field(&run, "run", "a trained run: measure the queries and keys of its heads on its validation data, too"),
      field(&sequences, "sequences", "largest number of sequences of the run's validation data").in(2, 1e6),
      field(&layers, "layers", "layers of untrained Transformers, pre-norm and post-norm, whose gradients by layer are measured; 0: none")
          .in(0, 64)};
}

std::optional<std::string> SoftmaxScalingSettings::contradiction() {
  if (auto const wrong = not_whole("d_k", d_k)) return wrong;
  if (auto const wrong = not_whole("keys", keys)) return wrong;
  if (scale.empty() && power.empty()) return "scale: is empty";
  if (distribution.empty() && !run) return "distribution: is empty";
  return std::nullopt;
}

std::vector<std::string> SoftmaxScalingSettings::scales() const {
  auto names = scale;
  for (double const alpha : power) names.push_back(fmt::format("{}{}", power_prefix, alpha));
  return names;
}

double SoftmaxScalingSettings::shown_keys() const { return std::ranges::find(keys, 10.0) != keys.end() ? 10 : keys.front(); }

SoftmaxScalingSettings SoftmaxScalingSettings::looked_at() const {
  SoftmaxScalingSettings few = *this;
  if (!quick) return few;
  few.d_k.clear();
  for (std::size_t i = 0; i < d_k.size(); i += 2) few.d_k.push_back(d_k[i]);
  double most = 0;  // many keys are what takes long
  for (double const n : keys) most = n <= 64 ? std::max(most, n) : most;
  few.keys = {keys.front(), shown_keys(), most > 0 ? most : keys.front()};
  std::ranges::sort(few.keys);
  few.keys.erase(std::unique(few.keys.begin(), few.keys.end()), few.keys.end());
  if (distribution.size() > 1)
    few.distribution = {std::ranges::find(distribution, "gaussian") != distribution.end() ? "gaussian" : distribution.front()};
  few.precision = std::max(precision, 0.05);
  return few;
}

}  // namespace heed
