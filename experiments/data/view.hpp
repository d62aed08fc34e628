#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/data/open.hpp"
#include "nn/model.hpp"

namespace heed {

/// A view that transforms other data. What it does not override is the plain data's.
class View : public Dataset {
 public:
  explicit View(std::unique_ptr<Dataset> plain) : plain_(std::move(plain)) {}

  Signature signature() const override { return plain_->signature(); }
  Batch training(Index index, Index batch, Index context) const override { return plain_->training(index, batch, context); }
  Index validation_batches(Index batch, Index context) const override { return plain_->validation_batches(batch, context); }
  Batch validation(Index index, Index batch, Index context) const override { return plain_->validation(index, batch, context); }
  TargetGroups groups() const override { return plain_->groups(); }
  std::vector<std::vector<Link>> links(Index index, Index batch, Index context) const override {
    return plain_->links(index, batch, context);
  }
  std::optional<std::string> reference(Index row) const override { return plain_->reference(row); }
  Example const* example(Index row) const override { return plain_->example(row); }
  std::string stretch(Index row, Index first, Index last) const override { return plain_->stretch(row, first, last); }
  std::vector<std::string> remarks() const override { return plain_->remarks(); }
  std::vector<ExampleSize> example_sizes(bool held_out) const override { return plain_->example_sizes(held_out); }
  std::optional<std::string> cut_short(Index context) const override { return plain_->cut_short(context); }
  std::vector<std::string> classes() const override { return plain_->classes(); }
  std::shared_ptr<Tokenizer const> tokenizer_handle() const override { return plain_->tokenizer_handle(); }
  std::shared_ptr<Tokenizer const> source_tokenizer_handle() const override { return plain_->source_tokenizer_handle(); }
  std::optional<TextUnits> held_out_units() const override { return plain_->held_out_units(); }
  ReadFiles files() const override { return plain_->files(); }
  nlohmann::json describe() const override;
  std::optional<double> optimum(Index rows, Index context) const override { return plain_->optimum(rows, context); }
  std::vector<std::pair<std::string, double>> reference_losses() const override { return plain_->reference_losses(); }
  std::vector<Baseline> baselines() const override { return plain_->baselines(); }

 protected:
  Dataset const& plain() const { return *plain_; }

 private:
  std::unique_ptr<Dataset> plain_;
};

/// A kind of view, with the name that models use (InputPart::view) and the parts of the plain data that it needs.
struct ViewKind {
  std::string name;
  std::vector<std::string> needs;
  /// `settings`: the model's settings for the view (InputPart::view_settings), or null.
  std::function<std::unique_ptr<Dataset>(std::unique_ptr<Dataset> plain, std::uint64_t seed, Settings const* settings)> make;
};

/// The data in the view of this name. Throws Error for an unknown name.
std::unique_ptr<Dataset> make_view(std::string const& name, std::unique_ptr<Dataset> data, std::uint64_t seed);

/// The data as a model reads them: each missing part is made by the view that the model names for it. Throws Error that begins with the key
/// concerned if there is no such view, or if the data lack what it needs.
std::unique_ptr<Dataset> viewed(std::unique_ptr<Dataset> data, Choice const& model, std::uint64_t seed);

}  // namespace heed
