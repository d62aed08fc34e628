#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.hpp"
#include "nn/settings.hpp"

namespace heed {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// `init:` initial weights, perhaps from a checkpoint.
struct InitSettings : Settings {
  std::string from;                  ///< a checkpoint; empty: random weights
  std::optional<Index> layers;       ///< number of its blocks to copy, with the embeddings; none: all of it
  std::vector<std::string> changed;  ///< keys of the model that are meant to differ from the checkpoint's
  std::string scheme = "normal";  ///< normal: N(0, std²); xavier: uniform ±√(6/(in + out)) (Glorot & Bengio 2010); uniform: uniform ±std
  double std = 0.02;
  bool small_branches = true;  ///< apply the factors on the standard deviation (Initial::value); false: the scheme alone
  std::vector<Field> fields() override;
};

/// How one parameter is initialised.
struct Initial {
  enum class Kind { weight, normal, constant, drawn } kind;
  double value = 1;   ///< weight: factor on the scheme's standard deviation; normal: standard deviation; constant: the value
  double always = 1;  ///< weight: a factor on the standard deviation that no setting disables
  std::function<double(double)> of = {};  ///< drawn: the value for a uniform number

  static Initial weight(double factor = 1, double always = 1) { return {Kind::weight, factor, always}; }
  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  /// Normal, so that products with `inputs` numbers of variance 1 have variance spread².
  static Initial preserving(Index inputs, double spread = 1) { return normal(spread / std::sqrt(static_cast<double>(inputs))); }
  static Initial constant(double value) { return {Kind::constant, value}; }
  static Initial drawn(std::function<double(double uniform)> of) { return {Kind::drawn, 1, 1, std::move(of)}; }
};

/// Whether an optimizer's weight decay applies to a parameter. On: weight matrices (linear, convolutional, of a score) and embedding tables
/// (tokens, positions and distances). Off: biases, norms, and scalars of a head or a layer such as a scale.
enum class WeightDecay { on, off };

/// The parameters of a model: named leaves of the graph, in the order of creation. The names are the checkpoint's keys. A parameter's
/// initial values come from a stream keyed by its name, so that parameters with the same name and shape in two models start equal.
class Parameters {
 public:
  Parameters(std::uint64_t seed, DType dtype, InitSettings init = {}) : seed_(seed), dtype_(dtype), init_(std::move(init)) {}

  /// Parameters with shapes but without elements, to count a model's parameters before it is made.
  static Parameters counted(DType dtype) {
    Parameters parameters(0, dtype);
    parameters.counting_ = true;
    return parameters;
  }

  /// Parameters with these values instead of random ones: to differentiate or copy a module as a function of its parameters.
  static Parameters given(NamedTensors values, DType dtype) {
    Parameters parameters(0, dtype);
    parameters.given_ = std::move(values);
    return parameters;
  }

  /// Throws Error for a repeated name, or one that is not among the given ones with this shape.
  Tensor add(std::string const& name, Shape const& shape, Initial const& initial, WeightDecay decay);
  /// Adds another set's parameter, which both then have.
  void adopt(std::string const& name, Tensor const& parameter, WeightDecay decay) {
    if (decay == WeightDecay::on) decaying_.insert(name);
    append(name, parameter);
  }
  NamedTensors const& all() const { return all_; }
  Tensor const* find(std::string const& name) const;
  /// Whether weight decay applies to it; false for an unknown name.
  bool decays(std::string const& name) const { return decaying_.contains(name); }
  /// Multiplies the drawn values of a parameter by `spread`, and its rate in an optimizer by `rate`.
  void rescale(std::string const& name, double spread, double rate);
  /// The factors on learning rates by name; parameters that are not there have 1.
  std::map<std::string, double> const& rates() const { return rates_; }
  DType dtype() const { return dtype_; }
  /// The total number of elements.
  Index elements() const;
  void clear_gradients();

  /// Copies values into the parameters, converting the dtype. Throws Error, joined_messages() on missing, left-over, misshapen tensors.
  void assign(NamedTensors const& values);

 private:
  Tensor append(std::string const& name, Tensor const& parameter) {
    numbers_.emplace(name, all_.size());
    return all_.emplace_back(name, parameter).second;
  }

  std::uint64_t seed_;
  DType dtype_;
  InitSettings init_;
  bool counting_ = false;
  std::optional<NamedTensors> given_;
  NamedTensors all_;
  std::map<std::string, std::size_t> numbers_;  // in all_, by name
  std::set<std::string> decaying_;              // names
  std::map<std::string, double> rates_;
};

/// Joins messages into one line: all up to four, else the first three and the number of the others.
std::string joined_messages(std::vector<std::string> const& errors);

/// A path in a model's tree of names: Scope(p).at("blocks.0").at("mlp") makes parameters "blocks.0.mlp.…".
class Scope {
 public:
  explicit Scope(Parameters& parameters) : parameters_(&parameters) {}
  Scope at(std::string const& name) const { return {*parameters_, path_.empty() ? name : path_ + "." + name}; }
  Tensor parameter(std::string const& name, Shape const& shape, Initial const& initial, WeightDecay decay) const {
    return parameters_->add(path_.empty() ? name : path_ + "." + name, shape, initial, decay);
  }
  std::string const& path() const { return path_; }
  DType dtype() const { return parameters_->dtype(); }

 private:
  Scope(Parameters& parameters, std::string path) : parameters_(&parameters), path_(std::move(path)) {}
  Parameters* parameters_;
  std::string path_;
};

}  // namespace heed
