#include "experiments/metric/probe/attention_maps.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "nn/files/number.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// A token's text as something that can be seen: blanks and ends of lines by their signs, bytes that are no character as \xE2.
std::string visible(std::string const& text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    auto const character = decode_utf8(text, i);
    if (character == U' ')
      shown += "␣";
    else if (character == U'\n')
      shown += "⏎";
    else if (!character || *character < 0x20 || (*character >= 0x7F && *character < 0xA0))
      for (auto at = start; at < i; ++at) shown += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[at]));
    else
      shown += text.substr(start, i - start);
  }
  return shown;
}

/// Without tokens and pixels if the batch has no such part, or as neither.
AttentionMaps::LabelledPart part_of(Batch const& batch, std::string const& name, PartTokenizers const& tokenizers) {
  AttentionMaps::LabelledPart part{name, batch.get(name), {}, {}};
  if (part.tokens.defined() && part.tokens.dtype() == DType::int64 && part.tokens.rank() == 4) return {name, {}, {}, {}, part.tokens};
  if (!part.tokens.defined() || part.tokens.dtype() != DType::int64 || part.tokens.rank() != 2) return {name, {}, {}, {}};
  for (auto const token : part.tokens.data<std::int64_t>()) {
    auto const* const tokenizer = tokenizers[name];
    auto const behind = tokenizer != nullptr ? token - tokenizer->vocabulary() : -1;
    bool const added = behind >= 0 && behind < std::ssize(tokenizers.added);
    part.labels.push_back(added ? heed::at(tokenizers.added, behind) : token_label(tokenizer, token));
  }
  if (Tensor const lengths = batch.get(name == "inputs" ? "lengths" : name + "_lengths"); lengths.defined()) {
    auto const each = lengths.data<std::int64_t>();
    if (std::ranges::any_of(each, [&](Index length) { return length < part.tokens.size(1); }))
      part.lengths.assign(each.begin(), each.end());
  }
  return part;
}

/// The step in the name of a file: "step-000500.npz", or ".step-000500.npz.part", which a kill may leave behind. Nothing for other files.
std::optional<Index> step_of(std::string const& name) {
  auto const begin = name.find("step-"), end = name.find(".npz");
  if (begin > 1 || end == std::string::npos) return std::nullopt;
  return parsed_number<Index>(std::string_view(name).substr(begin + 5, end - begin - 5));
}

}  // namespace

std::vector<AttentionRecord> recorded_attention(Model const& model, Batch const& batch, AttentionRecorder::RecorderOptions options,
                                                Pass pass) {
  AttentionRecorder recorder(std::move(options));
  Observer const observer{.attention = &recorder};
  pass.watching.observer = &observer;
  model.run(batch, pass);
  return recorder.records();
}

std::string token_label(Tokenizer const* tokenizer, Index token) {
  if (tokenizer == nullptr) return std::to_string(token);
  if (token == tokenizer->vocabulary()) return std::string(mask_text);
  auto const mark = tokenizer->mark(token);
  return mark ? *mark : visible(tokenizer->decode({token}));
}

std::vector<std::string> AttentionMaps::axis(std::string_view part, Index row, Index width) const {
  std::vector<std::string> labels;
  auto const found = std::ranges::find(parts, part, &LabelledPart::name);
  if (found == parts.end() || !found->tokens.defined()) {
    for (Index position = 0; position < width; ++position) labels.push_back(std::to_string(position));
    return labels;
  }
  auto const first = found->labels.begin() + row * found->tokens.size(1);
  auto const length = found->lengths.empty() ? found->tokens.size(1) : heed::at(found->lengths, row);
  return {first, first + length};
}

bool AttentionMaps::only_inputs() const {
  return std::ranges::all_of(layers,
                             [](AttentionRecord const& layer) { return layer.of.queries == "inputs" && layer.of.keys == "inputs"; });
}

std::vector<NpyArray> AttentionMaps::arrays(bool single) const {
  auto const rows = [&](Tensor const& x) { return single ? x.viewed(Shape(std::span<Index const>(x.shape()).subspan(1))) : x; };
  bool const plain = only_inputs();
  std::vector<NpyArray> arrays;
  for (auto const& part : parts) {
    std::string const before = plain ? "" : part.name + ".";
    if (part.pixels.defined()) arrays.push_back(NpyArray::of(before + "pixels", rows(part.pixels)));
    if (!part.tokens.defined()) continue;
    arrays.push_back(NpyArray::of(before + "tokens", rows(part.tokens)));
    arrays.push_back(NpyArray::of(before + "labels", part.labels));
    if (!part.lengths.empty() && !single)
      arrays.push_back(NpyArray::of(before + "lengths", Tensor::of(part.lengths, {std::ssize(part.lengths)})));
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto const& [name, of] = std::tie(layers[i].layer, layers[i].of);
    arrays.push_back(NpyArray::of(fmt::format("layer{}.weights", i), rows(layers[i].weights)));
    if (!plain) arrays.push_back(NpyArray::of(fmt::format("layer{}.of", i), {name, of.queries, of.keys}));
    if (of.across > 0)
      arrays.push_back(NpyArray::of(fmt::format("layer{}.across", i), Tensor::full({}, static_cast<double>(of.across), DType::int64)));
  }
  return arrays;
}

AttentionMaps record_attention_maps(Model const& model, Batch const& batch, PartTokenizers const& tokenizers, Pass pass) {
  NoGrad const no_grad;
  AttentionMaps attention{{}, recorded_attention(model, batch, {.weights = true}, std::move(pass))};
  std::vector<std::string> names{"inputs"};
  for (auto const& layer : attention.layers)
    for (auto const& name : {layer.of.queries, layer.of.keys})
      if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (auto const& name : names)
    if (auto part = part_of(batch, name, tokenizers); part.tokens.defined() || part.pixels.defined())
      attention.parts.push_back(std::move(part));
  return attention;
}

AttentionMapWriter::AttentionMapWriter(MapSettings const& settings, Model const& model, Dataset const& data, fs::path const& run,
                                       Index step)
    : settings_(settings), model_(model), data_(data), folder_(run / "attention") {
  if (settings_.examples == 0) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", folder_.string(), error.message()));
  for (auto const& entry : fs::directory_iterator(folder_))
    if (auto const of = step_of(entry.path().filename().string()); of && *of >= step) fs::remove(entry.path(), error);
}

void AttentionMapWriter::write(Index step) const {
  bool const held_out = data_.validation_batches(settings_.examples, model_.context()) > 0;
  Index const rows = settings_.examples, context = model_.context();
  Batch const batch = (held_out ? data_.validation(0, rows, context) : data_.training(0, rows, context)).first(rows);
  HardChoices expected{.mode = HardChoices::Mode::expectation, .made = {}, .codes = {}};
  Pass pass;
  pass.watching.hard_choices = &expected;
  PartTokenizers const tokenizers{data_.facts().tokenizer, data_.facts().source_tokenizer, data_.signature()["inputs"].added};
  auto const attention = record_attention_maps(model_, batch, tokenizers, pass);
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
