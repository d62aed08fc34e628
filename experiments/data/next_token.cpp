#include "experiments/data/view.hpp"

namespace heed {
namespace {

/// Language modelling: the target of every token is the one after it.
class NextToken : public View {
 public:
  using View::View;

  Signature signature() const override {
    Signature given = View::signature();
    PartSpec target = given["next"];
    target.name = "targets";
    target.made_by = "next_token";
    given.remove("next");
    given.set(std::move(target));
    return given;
  }
  Batch training(Index index, Index batch, Index context) const override { return renamed(View::training(index, batch, context)); }
  Batch validation(Index index, Index batch, Index context) const override { return renamed(View::validation(index, batch, context)); }

 private:
  static Batch renamed(Batch batch) {
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
