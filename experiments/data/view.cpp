#include "experiments/data/view.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {
namespace {

/// Language modelling: the target of every token is the one after it.
class NextToken : public View {
 public:
  explicit NextToken(std::unique_ptr<Dataset> plain) : View(std::move(plain)) {
    PartSpec target = signature()["next"];
    target.name = "targets";
    target.made_by = "next_token";
    facts_.signature.remove("next");
    facts_.signature.set(std::move(target));
  }

 private:
  Batch shown(Batch batch, ShownRows const&) const override {
    batch.set("targets", batch["next"]);
    batch.set("next", {});
    return batch;
  }
};

Declared<ViewKind> const next_token_view{
    {"next_token", {"inputs", "next"}, [](std::unique_ptr<Dataset> plain, std::uint64_t, Settings const*) {
       return std::make_unique<NextToken>(std::move(plain));
     }}};

}  // namespace

std::unique_ptr<Dataset> make_view(std::string const& name, std::unique_ptr<Dataset> data, std::uint64_t seed) {
  return Registry<ViewKind>::at(name, "there is no view").make(std::move(data), seed, nullptr);
}

std::unique_ptr<Dataset> viewed(std::unique_ptr<Dataset> data, Choice const& model, std::uint64_t seed) {
  for (InputPart const& needed : input_parts_of(model)) {
    Signature const& given = data->signature();
    if (given.has(needed.name)) continue;
    auto const* const view = Registry<ViewKind>::find(needed.view);
    bool const possible = view != nullptr && std::ranges::all_of(view->needs, [&](std::string const& part) { return given.has(part); });
    if (!possible)
      throw Error(fmt::format("data.kind: a model of kind {} reads '{}', which these data do not give; they give {}", model.kind,
                              needed.name, given.names()));
    data = view->make(std::move(data), seed, needed.view_settings);
  }
  return data;
}

}  // namespace heed
