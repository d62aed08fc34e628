#include "nn/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/random.hpp"

namespace heed {

std::vector<Field> InitSettings::fields() {
  return {
      field(&from, "from", "a checkpoint or run to take initial weights from, and what `model` leaves out; empty: random weights"),
      field(&layers, "layers",
            "number of its blocks that are transferred, with the embeddings (Radford et al. 2018, figure 2); none: the whole model")
          .in(0, 1000),
      field(&changed, "changed",
            "keys of the model (model.attention.align, …), or sections, that are meant to make it another function of these weights"),
      field(&scheme, "scheme", "distribution of random weights").one_of({"normal", "xavier", "uniform"}),
      field(&std, "std", "standard deviation of the weights (not for xavier)").at_least(0),
      field(&small_branches, "small_branches",
            "pre-norm: residual output projections start scaled by 1/√(number of branches), as GPT-2's (Radford et al. 2019)"),
  };
}

namespace {

Tensor drawn(Shape const& shape, Initial const& initial, InitSettings const& init, Stream const& stream, DType dtype) {
  switch (initial.kind) {
    case Initial::Kind::constant:
      return Tensor::full(shape, initial.value, dtype);
    case Initial::Kind::normal:
      return scale(Tensor::normal(shape, stream, dtype), initial.value);
    case Initial::Kind::drawn: {
      std::vector<double> values;
      for (Index i = 0; i < shape.elements(); ++i) values.push_back(initial.of(stream.uniform(static_cast<std::uint64_t>(i))));
      return Tensor::of(values, shape, dtype);
    }
    case Initial::Kind::weight:
      break;
  }
  double const factor = (init.small_branches ? initial.value : 1) * initial.always;
  if (init.scheme == "normal") return scale(Tensor::normal(shape, stream, dtype), init.std * factor);
  double spread = init.std;
  if (init.scheme == "xavier") {
    auto const outputs = static_cast<double>(shape.rank() > 0 ? shape[0] : 1);
    spread = std::sqrt(6 / (outputs + static_cast<double>(shape.elements()) / std::max(outputs, 1.0)));
  }
  spread *= factor;
  return Tensor::uniform(shape, stream, dtype, -spread, spread);
}

}  // namespace

Tensor Parameters::add(std::string const& name, Shape const& shape, Initial const& initial, WeightDecay decay) {
  if (find(name) != nullptr) throw Error(fmt::format("parameters: the name '{}' is taken", name));
  if (decay == WeightDecay::on) decaying_.insert(name);
  if (counting_) return append(name, Tensor::of_shape(shape, dtype_));
  if (given_) {
    auto const found = std::ranges::find(*given_, name, &std::pair<std::string, Tensor>::first);
    if (found == given_->end() || found->second.shape() != shape)
      throw Error(fmt::format("parameters: '{}' {} was not given", name, to_string(shape)));
    return append(name, found->second);
  }
  Tensor value = drawn(shape, initial, init_, Stream(seed_, "initial").child(name), dtype_);
  value.set_requires_grad();
  return append(name, value);
}

void Parameters::rescale(std::string const& name, double spread, double rate) {
  rates_[name] = rate;
  if (counting_ || given_) return;
  Tensor parameter = *find(name);
  copy_elements(scale(parameter.detach(), spread), parameter);
}

Tensor const* Parameters::find(std::string const& name) const {
  auto const found = numbers_.find(name);
  return found == numbers_.end() ? nullptr : &all_[found->second].second;
}

Index Parameters::elements() const {
  Index total = 0;
  for (auto const& [name, value] : all_) total += value.elements();
  return total;
}

void Parameters::clear_gradients() {
  for (auto& [name, value] : all_) value.clear_grad();
}

std::string joined_messages(std::vector<std::string> const& errors) {
  constexpr std::size_t max_shown = 3;
  auto const shown = errors.size() > max_shown + 1 ? max_shown : errors.size();
  auto text = fmt::format("{}", fmt::join(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (shown < errors.size()) text += fmt::format("; and {} more", errors.size() - shown);
  return text;
}

void Parameters::assign(NamedTensors const& values) {
  std::map<std::string, Tensor> given(values.begin(), values.end());
  std::vector<std::string> errors;
  for (auto const& [name, parameter] : all_) {
    auto const found = given.find(name);
    if (found == given.end()) {
      errors.push_back(fmt::format("'{}' {} is missing", name, to_string(parameter.shape())));
    } else if (found->second.shape() != parameter.shape()) {
      errors.push_back(fmt::format("'{}' is {}, the model's is {}", name, to_string(found->second.shape()), to_string(parameter.shape())));
    }
  }
  for (auto const& [name, value] : given) {
    if (find(name) == nullptr) errors.push_back(fmt::format("'{}' {} is not the model's", name, to_string(value.shape())));
  }
  if (!errors.empty()) throw Error(joined_messages(errors));
  for (auto& [name, parameter] : all_) copy_elements(given.at(name).detach().to(dtype_), parameter);
}

}  // namespace heed
