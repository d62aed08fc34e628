#include "experiments/metric/probe/maps.hpp"

#include <charconv>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "nn/files/npz.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// Of "step-000500.npz", and of ".step-000500.npz.part", which a kill may leave behind; nothing for another file.
std::optional<std::int64_t> step_of(std::string const& name) {
  auto const begin = name.find("step-");
  if (begin > 1 || name.find(".npz") == std::string::npos) return std::nullopt;
  std::int64_t step = 0;
  auto const* const end = name.data() + name.size();
  auto const [rest, error] = std::from_chars(name.data() + begin + 5, end, step);
  return error == std::errc() && std::string_view(rest, end).starts_with(".npz") ? std::optional(step) : std::nullopt;
}

}  // namespace

AttentionMapWriter::AttentionMapWriter(MapSettings const& settings, Model const& model, Dataset const& data, fs::path const& run,
                                       std::int64_t step)
    : settings_(settings), model_(model), data_(data), folder_(run / "attention") {
  if (settings_.examples == 0) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", folder_.string(), error.message()));
  for (auto const& entry : fs::directory_iterator(folder_))
    if (auto const of = step_of(entry.path().filename().string()); of && *of >= step) fs::remove(entry.path(), error);
}

void AttentionMapWriter::write(std::int64_t step) const {
  bool const held_out = data_.validation_batches(settings_.examples, model_.context()) > 0;
  std::int64_t const rows = settings_.examples, context = model_.context();
  Batch const batch = (held_out ? data_.validation(0, rows, context) : data_.training(0, rows, context)).first(rows);
  HardChoices expected;
  expected.mode = HardChoices::Mode::expectation;
  Pass pass;
  pass.watching.hard_choices = &expected;
  PartTokenizers const tokenizers{data_.tokenizer_handle(), data_.source_tokenizer_handle(), data_.signature()["inputs"].added};
  auto const attention = attention_maps(model_, batch, tokenizers, pass);
  write_npz(folder_ / fmt::format("step-{:06}.npz", step), attention.arrays());
}

std::vector<std::string> AttentionMapWriter::files() const {
  std::vector<std::string> all;
  std::error_code none;
  for (auto const& entry : fs::directory_iterator(folder_, none)) all.push_back("attention/" + entry.path().filename().string());
  std::erase_if(all, [](std::string const& file) { return !file.starts_with("attention/step-"); });
  std::ranges::sort(all);
  return all;
}

}  // namespace heed
