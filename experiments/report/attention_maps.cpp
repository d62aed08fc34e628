#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/report/page.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/npz.hpp"
#include "nn/files/number.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

/// How much of the maps is shown.
struct Extent {
  std::size_t steps = 8, examples = 6, tokens = 64;

  /// Halves what is most of all beyond what a page should have.
  bool shrink() {
    for (auto const& [what, least] : {std::pair(&steps, 4U), {&examples, 2U}, {&steps, 1U}, {&tokens, 16U}, {&examples, 1U}}) {
      if (*what <= least) continue;
      *what /= 2;
      return true;
    }
    return false;
  }
};

/// The number in a name between these texts: 12 in "layer12.weights"; nothing in another name.
std::optional<Index> number_in(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() < before.size() + after.size()) return std::nullopt;
  return parsed_number<Index>(name.substr(before.size(), name.size() - before.size() - after.size()));
}

using Maps = std::vector<std::pair<Index, fs::path>>;

/// attention/step-*.npz by step.
Maps maps_in(fs::path const& run) {
  Maps maps;
  std::error_code none;
  for (auto const& entry : fs::directory_iterator(run / "attention", none))
    if (auto const step = number_in(entry.path().filename().string(), "step-", ".npz")) maps.emplace_back(*step, entry.path());
  std::ranges::sort(maps);
  return maps;
}

/// So many of the maps, evenly, with the first and the last (of one: the last).
Maps thinned(Maps const& maps, std::size_t count) {
  if (maps.size() <= count) return maps;
  if (count == 1) return {maps.back()};
  Maps result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(maps[i * (maps.size() - 1) / (count - 1)]);
  return result;
}

/// One layer: [example, head, query, key] as far as the extent goes, each map in roots of shares of its largest weight,
/// so that small ones are not lost.
Json layer_json(Tensor const& weights, Extent const& extent) {
  auto const& shape = weights.shape();
  Index const heads = shape[1], tokens = static_cast<Index>(extent.tokens);
  Index const queries = std::min(shape[2], tokens), keys = std::min(shape[3], tokens);
  Tensor const examples = weights.rows(0, std::min(shape[0], static_cast<Index>(extent.examples)));
  auto shown = slice(slice(examples, 2, 0, queries), 3, 0, keys).to_vector();
  for (double& weight : shown) weight = std::isnan(weight) ? 0 : std::clamp(weight, 0.0, 1.0);
  std::string bytes;
  Json peaks = Json::array();
  auto const size = static_cast<std::size_t>(queries * keys);
  for (std::size_t first = 0; first < shown.size(); first += size) {
    auto const map = std::span(shown).subspan(first, size);
    double const peak = std::ceil(std::ranges::max(map) * 1e4) / 1e4;  // as it is written
    peaks.push_back(peak);
    for (double const weight : map) bytes += static_cast<char>(peak > 0 ? std::lround(255 * std::sqrt(std::min(1.0, weight / peak))) : 0);
  }
  return {{"heads", heads}, {"queries", queries},      {"keys", keys}, {"places", {shape[2], shape[3]}},
          {"peaks", peaks}, {"weights", base64(bytes)}};
}

/// The index of a value in a list, to which it is added if it is not there.
std::size_t index_in(Json& list, Json const& value) {
  auto const index = static_cast<std::size_t>(std::find(list.begin(), list.end(), value) - list.begin());
  if (index == list.size()) list.push_back(value);
  return index;
}

/// A picture as bytes, the brightest 255.
Json picture_json(Tensor const& pixels, double brightest) {
  std::string bytes;
  for (double const level : pixels.to_vector())
    bytes += static_cast<char>(std::lround(255 * std::clamp(brightest > 0 ? level / brightest : 0, 0.0, 1.0)));
  return {{"channels", pixels.size(0)}, {"height", pixels.size(1)}, {"width", pixels.size(2)}, {"pixels", base64(bytes)}};
}

/// A file of maps, and so many examples that are in it.
struct MapFile {
  std::string path;
  std::map<std::string, NpyArray> arrays;
  Index examples = std::numeric_limits<Index>::max();

  /// Throws FileError that begins with the file's name.
  template <class... Arguments>
  void check(bool held, fmt::format_string<Arguments...> message, Arguments&&... arguments) const {
    if (!held) throw FileError(path + ": " + fmt::format(message, std::forward<Arguments>(arguments)...));
  }
  NpyArray const* find(std::string const& name) const {
    auto const found = arrays.find(name);
    return found == arrays.end() ? nullptr : &found->second;
  }
};

/// How many of its places an example uses.
Index length_of(MapFile const& file, std::string const& before, Index row, Index places) {
  auto const* const array = file.find(before + "lengths");
  if (array == nullptr) return places;
  auto const lengths = array->tensor().to_vector();
  auto const length = row < std::ssize(lengths) ? at(lengths, row) : -1;
  file.check(length >= 0 && length <= static_cast<double>(places), "{}lengths do not fit its labels", before);
  return static_cast<Index>(length);
}

/// {part: {"text": index, "length": tokens}} of an example, for each part that has labels; {part: {"picture": index}} of a picture. What
/// the indices are of is added to the page's texts and pictures.
Json example_json(MapFile const& file, Index row, Extent const& extent, Json& page) {
  Json json = Json::object();
  for (auto const& [name, array] : file.arrays) {
    std::string_view constexpr labels = "labels", pixels = ".pixels";
    if (name.ends_with(pixels)) {
      Tensor const all = array.tensor();
      file.check(all.rank() == 4 && all.size(0) >= file.examples && all.elements() > 0 && all.dtype() == DType::int64,
                 "{} is not [examples, channels, height, width]", name);
      auto const brightest = static_cast<double>(std::ranges::max(all.data<std::int64_t>()));
      Tensor const picture = all.rows(row, 1).viewed({all.size(1), all.size(2), all.size(3)});
      json[name.substr(0, name.size() - pixels.size())] = {{"picture", index_in(page["pictures"], picture_json(picture, brightest))}};
    } else if (name == labels || name.ends_with(".labels")) {
      auto const before = name.substr(0, name.size() - labels.size());
      auto const texts = array.texts();
      auto const places = std::ssize(texts) / file.examples;
      file.check(places * file.examples == std::ssize(texts), "{} is not of {} texts", name, file.examples);
      auto const length = length_of(file, before, row, places);
      auto const first = texts.begin() + row * places;
      json[before.empty() ? "inputs" : before.substr(0, before.size() - 1)] = {
          {"text", index_in(page["texts"], std::vector(first, first + std::min(length, static_cast<Index>(extent.tokens))))},
          {"length", length}};
    }
  }
  return json;
}

/// The module's name and the parts whose places are its queries and keys; of a file that says none, the inputs.
std::vector<std::string> parts_of(MapFile const& file, Index layer) {
  auto const* const array = file.find(fmt::format("layer{}.of", layer));
  if (array == nullptr) return {"", "inputs", "inputs"};
  auto of = array->texts();
  file.check(of.size() == 3, "layer{}.of is not a name and two parts", layer);
  return of;
}

/// The number of picture fields per row; 0: the keys are no picture.
Index across_of(MapFile const& file, Index layer, Index keys) {
  auto const* const array = file.find(fmt::format("layer{}.across", layer));
  if (array == nullptr) return 0;
  Tensor const given = array->tensor();
  double const across = given.elements() == 1 ? given.item() : 0;
  file.check(across >= 1 && across <= to_double(keys) && std::fmod(to_double(keys), across) == 0, "layer{}.across does not divide its keys",
             layer);
  return static_cast<Index>(across);
}

Json step_json(Index step, fs::path const& path, Extent const& extent, Json& page) {
  check_written(path.parent_path().parent_path(), "attention/" + path.filename().string());
  MapFile file{path.string(), read_npz(path)};
  Json json{{"step", step}, {"examples", Json::array()}, {"layers", Json::array()}};
  std::map<Index, NpyArray const*> layers;
  for (auto const& [name, array] : file.arrays)
    if (auto const number = number_in(name, "layer", ".weights")) layers.emplace(*number, &array);
  file.check(!layers.empty(), "holds no weights");
  for (auto const& [number, array] : layers) {
    Tensor const weights = array->tensor();
    file.check(weights.rank() == 4 && weights.elements() > 0, "layer{}.weights is not [examples, heads, queries, keys]", number);
    auto& layer = json["layers"].emplace_back(layer_json(weights, extent));
    auto const of = parts_of(file, number);
    layer["name"] = of[0].empty() ? fmt::format("layer {}", number) : fmt::format("layer {}: {}", number, of[0]);
    layer["of"] = {of[1], of[2]};
    if (auto const across = across_of(file, number, weights.size(3)); across > 0) layer["across"] = across;
    file.examples = std::min(file.examples, weights.size(0));
  }
  for (Index i = 0; i < std::min(file.examples, static_cast<Index>(extent.examples)); ++i)
    json["examples"].push_back(example_json(file, i, extent, page));
  return json;
}

/// The seed in a trial's name, ARM-seedK-HASH; nothing for a single run.
Json seed_text_of(std::string const& folder) {
  auto const at = folder.rfind("-seed");
  if (at == folder.npos) return nullptr;
  return folder.substr(at + 5, folder.find('-', at + 5) - at - 5);
}

/// Names the maps that a run had left and that are not there any more.
void warn_of_missing(fs::path const& run, std::vector<std::string>& warnings) {
  for (auto const& file : files_written(run))
    if (file.starts_with("attention/") && !is_there(run / file))
      warnings.push_back(fmt::format("{} is missing, though the run had left it", (run / file).string()));
}

std::string maps_json(Material& material, Extent const& extent, bool warn) {
  Json json{{"texts", Json::array()}, {"arms", Json::array()}};
  for (auto const& arm : material.arms) {
    for (auto const& folder : arm.folders) {
      if (warn) warn_of_missing(material.folder / folder, material.warnings);
      auto const maps = thinned(maps_in(material.folder / folder), extent.steps);
      if (maps.empty()) continue;
      Json steps = Json::array();
      for (auto const& [step, path] : maps) {
        try {
          steps.push_back(step_json(step, path, extent, json));
        } catch (FileError const& error) {
          if (warn) material.warnings.emplace_back(error.what());
        }
      }
      if (steps.empty()) continue;
      json["arms"].push_back({{"name", arm.name}, {"seed", seed_text_of(folder)}, {"steps", std::move(steps)}});
      break;
    }
  }
  if (json["arms"].empty()) return "";
  return json_text(json);
}

}  // namespace

std::string attention_maps(Material& material, std::size_t budget) {
  Extent extent;
  std::string json = maps_json(material, extent, true);
  while (json.size() > budget && extent.shrink()) json = maps_json(material, extent, false);
  if (json.size() <= budget) return json;
  material.warnings.emplace_back("the attention maps are too large for this page; they are in attention/ of each trial");
  return "";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    auto const byte = [&](std::size_t k) { return k < bytes.size() ? static_cast<unsigned>(static_cast<unsigned char>(bytes[k])) : 0; };
    unsigned const three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (unsigned k = 0; k < 4; ++k) text += i + k <= bytes.size() ? letters[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace heed
