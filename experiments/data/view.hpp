#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/data/open.hpp"
#include "nn/model.hpp"

namespace heed {

/// Which rows a batch has: their split, the number of the first, and the places that a model has for each.
struct ShownRows {
  bool held_out;
  Index first, context;
};

/// A view of other data: it alters their facts, and transforms their batches.
class View : public Dataset {
 public:
  explicit View(std::unique_ptr<Dataset> plain) : Dataset(plain->facts()), plain_(std::move(plain)) {}

  Batch training(Index index, Index batch, Index context) const override {
    return shown(plain_->training(index, batch, room(context)), {false, index * batch, context});
  }
  Index validation_batches(Index batch, Index context) const override { return plain_->validation_batches(batch, room(context)); }
  Batch validation(Index index, Index batch, Index context) const override {
    return shown(plain_->validation(index, batch, room(context)), {true, index * batch, context});
  }
  Original original(Index row) const override { return plain_->original(row); }

 protected:
  Dataset const& plain() const { return *plain_; }
  /// The plain data's batch as models see it.
  virtual Batch shown(Batch plain, ShownRows const& rows) const = 0;
  /// How many of a model's `context` places are for tokens of the plain data.
  virtual Index room(Index context) const { return context; }

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
