#include "experiments/data/view.hpp"

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
}  // namespace heed
