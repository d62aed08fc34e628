#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.hpp"
#include "nn/settings.hpp"

namespace heed {

/// `init:` how weights start, and a checkpoint to start from.
struct InitSettings : Settings {
  std::string from;                    ///< a checkpoint; empty: draw
  std::optional<std::int64_t> layers;  ///< how many of its blocks are taken, with the embeddings; none: all of it
  std::string scheme = "normal";  ///< normal: N(0, std²); xavier: uniform ±√(6/(in + out)) (Glorot & Bengio 2010); uniform: uniform ±std
  double std = 0.02;
  bool small_branches = true;  ///< whether factors on the spread hold (Initial::value); false: all weights start by the scheme alone
  std::vector<Field> fields() override;
};

/// How one parameter starts.
struct Initial {
  enum class Kind { weight, normal, constant } kind;
  double value = 1;   ///< weight: factor on the scheme's spread; normal: standard deviation; constant: the value
  double always = 1;  ///< weight: a factor on the spread that no setting turns off

  static Initial weight(double factor = 1, double always = 1) { return {Kind::weight, factor, always}; }
  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  static Initial constant(double value) { return {Kind::constant, value}; }
};

/// Whether an optimizer's weight decay falls on a parameter. On: the weights of maps (linear, convolutional, of a score) and what is looked
/// up in tables (embeddings of tokens, places and distances). Off: biases, norms, and numbers of a head or a layer such as a scale.
enum class WeightDecay { on, off };

/// The parameters of a model: leaves of the graph with names, in the order of creation. The names are the checkpoint's keys. A parameter
/// draws its initial values from a stream keyed by its name, so that what two models share starts equal.
class Parameters {
 public:
  Parameters(std::uint64_t seed, DType dtype, InitSettings init = {}) : seed_(seed), dtype_(dtype), init_(std::move(init)) {}

  /// Parameters that are counted and have shapes, but no elements: what a model will need, before it is made.
  static Parameters counted(DType dtype) {
    Parameters parameters(0, dtype);
    parameters.counting_ = true;
    return parameters;
  }

  /// Parameters that are these tensors instead of drawn ones: a module as a function of its parameters, to differentiate or to move.
  static Parameters given(std::vector<std::pair<std::string, Tensor>> values, DType dtype) {
    Parameters parameters(0, dtype);
    parameters.given_ = std::move(values);
    return parameters;
  }

  /// Throws Error for a name that is taken, or is not among those given in this shape.
  Tensor add(std::string const& name, Shape const& shape, Initial const& initial, WeightDecay decay);
  std::vector<std::pair<std::string, Tensor>> const& all() const { return all_; }
  Tensor const* find(std::string const& name) const;
  /// Whether weight decay falls on this one; false for a name that there is not.
  bool decays(std::string const& name) const { return decaying_.contains(name); }
  DType dtype() const { return dtype_; }
  /// Number of numbers in all of them.
  std::int64_t elements() const;
  void clear_gradients();

  /// Copies values into the parameters, converting the dtype. Throws Error naming missing, left-over and misshapen tensors (in_short).
  void assign(std::vector<std::pair<std::string, Tensor>> const& values);

 private:
  std::uint64_t seed_;
  DType dtype_;
  InitSettings init_;
  bool counting_ = false;
  std::optional<std::vector<std::pair<std::string, Tensor>>> given_;
  std::vector<std::pair<std::string, Tensor>> all_;
  std::set<std::string> decaying_;  // names
};

/// Complaints in one line: all up to four, else the first three and how many more there are.
std::string in_short(std::vector<std::string> const& complaints);

/// A place in a model's tree of names: Scope(p).at("blocks.0").at("mlp") makes parameters "blocks.0.mlp.…".
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
