#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/open.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

/// `data: {kind: batches, path: F.safetensors, vocabulary: 31}`
struct BatchesSettings : Settings {
  std::string path;
  Index vocabulary = 0;

  std::vector<Field> fields() override {
    return {field(&path, "path", "safetensors file with inputs and targets, int64 [steps, accumulate·batch, T]").mandatory(),
            field(&vocabulary, "vocabulary", "number of token ids").at_least(1).mandatory()};
  }
};

/// Fixed batches, so that a trajectory can be compared with another framework's, step by step. Micro-batch `index` of `batch` rows is
/// rows k·batch … of step `index / accumulate`, where accumulate = rows in the file / batch and k = index mod accumulate.
class BatchesDataset : public Dataset {
 public:
  BatchesDataset(BatchesSettings const& settings, DataContext const& context) : file_(locate(settings.path, context)) {
    auto const sha256 = sha256_of_file(file_.path());
    facts_.signature = Signature::tokens(settings.vocabulary);
    facts_.files = {{"batches", {file_.path().string(), sha256}}};
    inputs_ = read("inputs", 3, 0, vocabulary() - 1);
    targets_ = read("targets", 3, -1, vocabulary() - 1);
    if (targets_.shape() != inputs_.shape())
      fail(fmt::format("targets {} and inputs {} differ in shape", to_string(targets_.shape()), to_string(inputs_.shape())));
    facts_.description = {{"file", file_.path().string()}, {"sha256", sha256}, {"vocabulary", vocabulary()}, {"steps", inputs_.size(0)}};
    if (file_.contains("source") != file_.contains("source_lengths")) fail("source and source_lengths belong together, but one is missing");
    if (!file_.contains("source")) return;
    facts_.signature.set({.name = "source", .classes = vocabulary()});
    source_ = read("source", 3, 0, vocabulary() - 1);
    source_lengths_ = read("source_lengths", 2, 1, source_.size(2));
    for (auto const* tensor : {&source_, &source_lengths_})
      if (tensor->size(0) != inputs_.size(0) || tensor->size(1) != inputs_.size(1))
        fail(fmt::format("{} {} and inputs {} differ in steps or rows", tensor == &source_ ? "source" : "source_lengths",
                         to_string(tensor->shape()), to_string(inputs_.shape())));
  }

  Batch training(Index index, Index batch, Index context) const override {
    auto const steps = inputs_.size(0), rows = inputs_.size(1);
    if (batch < 1 || rows % batch != 0) fail(fmt::format("a step has {} rows, which is not a multiple of train.batch = {}", rows, batch));
    if (inputs_.size(2) > context) fail(fmt::format("its sequences are {} tokens long, but the context is {}", inputs_.size(2), context));
    if (auto const step = index / (rows / batch); index < 0 || step >= steps)
      fail(fmt::format("step {} does not exist: the file holds {} steps", step, steps));
    auto const part = [&](Tensor const& all) {
      if (!all.defined()) return all;
      Shape in_order{steps * rows};  // without the axis of steps
      for (Index axis = 2; axis < static_cast<Index>(all.rank()); ++axis) in_order.append(all.size(axis));
      return all.viewed(in_order).rows(index * batch, batch);
    };
    return {{"inputs", part(inputs_)}, {"targets", part(targets_)}, {"source", part(source_)}, {"source_lengths", part(source_lengths_)}};
  }

  Index validation_batches(Index, Index) const override { return 0; }
  Batch validation(Index, Index, Index) const override { throw Error("data of kind batches have no validation split"); }

 private:
  [[noreturn]] void fail(std::string const& message) const { throw FileError(file_.path().string() + ": " + message); }

  Tensor read(std::string const& name, std::size_t rank, Index low, Index high) const {
    if (!file_.contains(name)) fail("there is no tensor '" + name + "'");
    if (file_.dtype(name) != DType::int64) fail(fmt::format("'{}' is {}, not int64", name, to_string(file_.dtype(name))));
    auto const& shape = file_.shape(name);
    if (shape.rank() != rank || std::count(shape.begin(), shape.end(), 0) > 0)
      fail(fmt::format("'{}' has shape {} instead of {}", name, to_string(shape), rank == 3 ? "[steps, rows, T]" : "[steps, rows]"));
    auto tensor = file_.tensor(name);
    auto const values = tensor.data<std::int64_t>();
    auto const wrong = std::find_if(values.begin(), values.end(), [&](auto value) { return value < low || value > high; });
    if (wrong != values.end())
      fail(fmt::format("'{}'{} is {}, outside {} … {}", name, coordinates(wrong - values.begin(), shape), *wrong, low, high));
    return tensor;
  }

  /// A row-major position as "[3, 0, 17]".
  static std::string coordinates(Index position, Shape shape) {
    for (auto axis = static_cast<Index>(shape.rank()) - 1; axis >= 0; --axis) {
      auto const extent = shape[axis];
      shape.set(axis, position % extent);
      position /= extent;
    }
    return to_string(shape);
  }

  SafetensorsFile file_;
  Tensor inputs_, targets_, source_, source_lengths_;
};

Declared<DataKind> const batches_data{data_kind("batches", "fixed batches from a safetensors file, to compare with another framework",
                                                open_as<BatchesSettings, BatchesDataset>)};

}  // namespace
}  // namespace heed
