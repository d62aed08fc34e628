#include "experiments/train/same_run.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/blas/products.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/processor/processor.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/ranks.hpp"
#include "experiments/train/session.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// Names and values.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// As many digits of a hash as a message shows.
std::string beginning(std::string const& hash) { return hash.substr(0, 16); }

std::string hash_of(Parameters const& parameters) {
  Sha256 hash;
  for (auto const& parameter : parameters.all()) {
    Tensor const& value = parameter.second;
    kernels::with_real(value.dtype(), [&](auto zero) { hash.update(std::as_bytes(value.data<decltype(zero)>())); });
  }
  return hash.hex();
}

Facts facts_of(Trainer const& trainer, Experiment& settings, fs::path const& folder, bool fresh) {
  Facts facts = flatten(tree(settings));
  for (auto const& [role, read] : trainer.files_read())
    facts.emplace_back(fmt::format("content of {} ({})", role, fs::path(read.file).filename().string()), beginning(read.sha256));
  bool const goes_on = !fresh && has_checkpoint(folder);
  facts.emplace_back("folder", fs::absolute(folder).lexically_normal().string());
  facts.emplace_back("checkpoint", goes_on ? beginning(sha256_of_file(folder / "checkpoint.safetensors")) : "none");
  facts.emplace_back("finished", goes_on && is_finished(folder, settings) ? "yes" : "no");
  facts.emplace_back("program", beginning(sha256_of_file(program_file())));
  facts.emplace_back("processor", processor_name());
  facts.emplace_back("matrix products", matrix_library());
  facts.emplace_back("initial weights", beginning(hash_of(trainer.parameters())));
  return facts;
}

/// "train.steps: 40 (rank 0, 2), 50 (rank 1)"; nothing if the fact is the same for all ranks. `all`: by rank.
std::optional<std::string> difference(std::string const& name, std::vector<Facts> const& all) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> values;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    auto const fact = std::ranges::find(all[rank], name, &Facts::value_type::first);
    std::string const value = fact == all[rank].end() ? "not there" : fact->second;
    auto const known = std::ranges::find_if(values, [&](auto const& each) { return each.first == value; });
    (known == values.end() ? values.emplace_back(value, std::vector<std::size_t>()) : *known).second.push_back(rank);
  }
  if (values.size() == 1) return std::nullopt;
  std::vector<std::string> texts;
  for (auto const& [value, where] : values) texts.push_back(fmt::format("{} (rank {})", value, fmt::join(where, ", ")));
  return fmt::format("{}: {}", name, fmt::join(texts, ", "));
}

}  // namespace

void check_same_run(Trainer const& trainer, Experiment& settings, fs::path const& folder, bool fresh) {
  std::vector<Facts> all;
  for (auto const& text : ranks().gathered_texts(json_text(facts_of(trainer, settings, folder, fresh))))
    all.push_back(parse_json<nlohmann::json>(text, "what another rank has sent"));
  std::vector<std::string> names, differences;
  for (Facts const& facts : all)
    for (auto const& [name, value] : facts)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (auto const& name : names)
    if (auto const found = difference(name, all)) differences.push_back(*found);
  if (!differences.empty()) throw ConfigError(fmt::format("the ranks of a run differ: {}", fmt::join(differences, "; ")));
}

}  // namespace heed
