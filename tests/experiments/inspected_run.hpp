#pragma once

#include "experiments/commands/inspect.hpp"
#include "tests/experiments/untrained_run.hpp"

namespace heed::test {

struct InspectedRun {
  explicit InspectedRun(std::string const& tokenizer, std::string const& kind = "gpt", std::string const& more = "",
                        std::string const& source = "") {
    auto const size = (tokenizer.empty() ? 5 : restore_tokenizer(tokenizer)->vocabulary()) + (kind == "bert" ? 2 : 0);
    Signature data = Signature::tokens(size);
    if (kind == "bert") data.set({.name = "inputs", .classes = size, .added = {"[MASK]", "[SEP]"}});  // it goes by its name
    auto const source_size = source.empty() ? size : restore_tokenizer(source)->vocabulary();
    if (kind == "transformer") data.set({.name = "source", .classes = source_size, .vocabulary = source.empty() ? "" : "source"});
    save_untrained(
        folder, "dtype: float64\ninit: {std: 0.5}\nmodel: {kind: " + kind + ", layers: 2, heads: 3, width: 12, context: 16" + more + "}\n",
        data, {{"tokenizer", tokenizer}, {"source_tokenizer", source}});
  }
  InspectOptions options(std::string const& text) const {
    InspectOptions made;
    made.run = folder / "tiny", made.text = text;
    return made;
  }
  /// What is shown.
  static std::string shown(InspectOptions const& options) {
    std::ostringstream out;
    auto const code = inspect(options, out);
    CHECK(code == Exit::done);
    return out.str();
  }
  std::string operator()(std::string const& text, std::optional<std::string> const& target = {}) const {
    auto all = options(text);
    all.target = target;
    return shown(all);
  }
  Folder folder;
};

}  // namespace heed::test
