#include "experiments/report/attention_maps.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/folder/result_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/npz.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// How much of the maps is shown.
struct Extent {
  std::size_t steps = 8, examples = 6;
  Index tokens = 64;
  bool shrink() {
    if (steps > 4)
      steps /= 2;
    else if (examples > 2)
      examples /= 2;
    else if (steps > 1)
      steps /= 2;
    else if (tokens > 16)
      tokens /= 2;
    else if (examples > 1)
      examples /= 2;
    else
      return false;
    return true;
  }
};

using Maps = std::vector<std::pair<Index, fs::path>>;

/// attention/step-*.npz by step.
Maps maps_in(fs::path const& run) {
  Maps maps;
  std::error_code none;
  for (auto const& entry : fs::directory_iterator(run / "attention", none)) {
    auto const name = entry.path().filename().string();
    std::string_view constexpr before = "step-";
    Index step = 0;
    auto const* const end = name.data() + name.size();
    if (!name.starts_with(before) || !name.ends_with(".npz")) continue;
    if (auto const [stop, error] = std::from_chars(name.data() + before.size(), end, step); error == std::errc() && stop + 4 == end)
      maps.emplace_back(step, entry.path());
  }
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
  Index const examples = std::min(shape[0], static_cast<Index>(extent.examples)), heads = shape[1];
  Index const queries = std::min(shape[2], extent.tokens), keys = std::min(shape[3], extent.tokens);
  auto const values = weights.to_vector();
  auto const weight = [&](Index map, Index i, Index j) {
    double const value = heed::at(values, (map * shape[2] + i) * shape[3] + j);
    return std::isnan(value) ? 0 : std::clamp(value, 0.0, 1.0);
  };
  std::string bytes;
  Json peaks = Json::array();
  for (Index map = 0; map < examples * heads; ++map) {
    double peak = 0;
    for (Index i = 0; i < queries; ++i)
      for (Index j = 0; j < keys; ++j) peak = std::max(peak, weight(map, i, j));
    peak = std::ceil(peak * 1e4) / 1e4;  // as it is written
    peaks.push_back(peak);
    for (Index i = 0; i < queries; ++i)
      for (Index j = 0; j < keys; ++j)
        bytes += static_cast<char>(peak > 0 ? std::lround(255 * std::sqrt(std::min(1.0, weight(map, i, j) / peak))) : 0);
  }
  return {{"heads", heads}, {"queries", queries},      {"keys", keys}, {"places", {shape[2], shape[3]}},
          {"peaks", peaks}, {"weights", base64(bytes)}};
}

/// The texts that maps belong to, each once.
class MapTexts {
 public:
  std::size_t index(std::vector<std::string> text) {
    auto const [place, fresh] = known_.try_emplace(text, known_.size());
    if (fresh) all_.push_back(std::move(text));
    return place->second;
  }
  Json json() const { return all_; }

 private:
  std::map<std::vector<std::string>, std::size_t> known_;
  std::vector<std::vector<std::string>> all_;
};

using Arrays = std::map<std::string, NpyArray>;

/// The pictures that maps belong to, each once: bytes, the brightest 255.
class Pictures {
 public:
  std::size_t index(Tensor const& pixels, double brightest) {
    std::string bytes;
    for (double const level : pixels.to_vector())
      bytes += static_cast<char>(std::lround(255 * std::clamp(brightest > 0 ? level / brightest : 0, 0.0, 1.0)));
    auto const [place, fresh] = known_.try_emplace(bytes, known_.size());
    if (fresh)
      all_.push_back({{"channels", pixels.size(0)}, {"height", pixels.size(1)}, {"width", pixels.size(2)}, {"pixels", base64(bytes)}});
    return place->second;
  }
  Json json() const { return all_; }

 private:
  std::map<std::string, std::size_t> known_;
  Json all_ = Json::array();
};

/// The texts and pictures on the axes of maps.
struct ShownMaps {
  MapTexts texts = {};
  Pictures pictures = {};
};

/// "layer12.weights" → 12; nothing for another array.
std::optional<int> layer_number(std::string const& name) {
  std::string_view constexpr before = "layer", after = ".weights";
  int number = 0;
  auto const* const end = name.data() + name.size();
  if (!name.starts_with(before)) return std::nullopt;
  auto const [rest, error] = std::from_chars(name.data() + before.size(), end, number);
  return error == std::errc() && std::string_view(rest, end) == after ? std::optional(number) : std::nullopt;
}

/// Reads the labels of a file's maps: the texts of a part, for every example.
class MapAxes {
 public:
  MapAxes(std::string path, Arrays const& arrays, Index examples) : path_(std::move(path)), arrays_(arrays), examples_(examples) {}

  /// {part: {"text": index, "length": tokens}} of an example, for each part that has labels; {part: {"picture": index}} of a picture.
  Json example(Index row, Extent const& extent, ShownMaps& shown) const {
    Json json = Json::object();
    add_pictures(json, row, shown.pictures);
    std::string_view constexpr after = "labels";
    for (auto const& [name, array] : arrays_) {
      if (name != after && !name.ends_with(".labels")) continue;
      auto const before = name.substr(0, name.size() - after.size());
      auto const labels = array.texts();
      auto const places = std::ssize(labels) / examples_;
      if (places * examples_ != std::ssize(labels)) throw FileError(fmt::format("{}: {} is not of {} texts", path_, name, examples_));
      auto const length = length_of(before, row, places);
      auto const first = labels.begin() + row * places;
      json[before.empty() ? "inputs" : before.substr(0, before.size() - 1)] = {
          {"text", shown.texts.index({first, first + std::min(length, extent.tokens)})}, {"length", length}};
    }
    return json;
  }

 private:
  void add_pictures(Json& json, Index row, Pictures& pictures) const {
    std::string_view constexpr after = ".pixels";
    for (auto const& [name, array] : arrays_) {
      if (!name.ends_with(after)) continue;
      Tensor const pixels = array.tensor();
      if (pixels.rank() != 4 || pixels.size(0) < examples_ || pixels.elements() == 0 || pixels.dtype() != DType::int64)
        throw FileError(fmt::format("{}: {} is not [examples, channels, height, width]", path_, name));
      auto const levels = pixels.data<std::int64_t>();
      Tensor const picture = pixels.rows(row, 1).viewed({pixels.size(1), pixels.size(2), pixels.size(3)});
      json[name.substr(0, name.size() - after.size())] = {
          {"picture", pictures.index(picture, static_cast<double>(std::ranges::max(levels)))}};
    }
  }

  Index length_of(std::string const& before, Index row, Index places) const {
    auto const found = arrays_.find(before + "lengths");
    if (found == arrays_.end()) return places;
    auto const lengths = found->second.tensor().to_vector();
    auto const length = row < std::ssize(lengths) ? heed::at(lengths, row) : -1;
    if (!(length >= 0 && length <= static_cast<double>(places)))
      throw FileError(fmt::format("{}: {}lengths do not fit its labels", path_, before));
    return static_cast<Index>(length);
  }

  std::string path_;
  Arrays const& arrays_;
  Index examples_;
};

/// The module's name and the parts whose places are its queries and keys; of a file that says none, the inputs.
std::vector<std::string> parts_of(std::string const& path, Arrays const& arrays, int layer) {
  auto const found = arrays.find(fmt::format("layer{}.of", layer));
  if (found == arrays.end()) return {"", "inputs", "inputs"};
  auto of = found->second.texts();
  if (of.size() != 3) throw FileError(fmt::format("{}: layer{}.of is not a name and two parts", path, layer));
  return of;
}

/// The number of picture fields per row; 0: the keys are no picture.
Index across_of(std::string const& path, Arrays const& arrays, int layer, Index keys) {
  auto const found = arrays.find(fmt::format("layer{}.across", layer));
  if (found == arrays.end()) return 0;
  Tensor const given = found->second.tensor();
  double const across = given.elements() == 1 ? given.item() : 0;
  if (!(across >= 1 && across <= static_cast<double>(keys)) || std::fmod(static_cast<double>(keys), across) != 0)
    throw FileError(fmt::format("{}: layer{}.across does not divide its keys", path, layer));
  return static_cast<Index>(across);
}

Json step_json(Index step, fs::path const& path, Extent const& extent, ShownMaps& shown) {
  check_written(path.parent_path().parent_path(), "attention/" + path.filename().string());
  auto const arrays = read_npz(path);
  Json json{{"step", step}, {"examples", Json::array()}, {"layers", Json::array()}};
  std::map<int, NpyArray const*> layers;
  for (auto const& [name, array] : arrays)
    if (auto const number = layer_number(name)) layers.emplace(*number, &array);
  Index examples = std::numeric_limits<Index>::max();
  for (auto const& [number, array] : layers) {
    Tensor const weights = array->tensor();
    if (weights.rank() != 4 || weights.elements() == 0)
      throw FileError(fmt::format("{}: layer{}.weights is not [examples, heads, queries, keys]", path.string(), number));
    auto layer = layer_json(weights, extent);
    auto const of = parts_of(path.string(), arrays, number);
    layer["name"] = of[0].empty() ? fmt::format("layer {}", number) : fmt::format("layer {}: {}", number, of[0]);
    layer["of"] = {of[1], of[2]};
    if (auto const across = across_of(path.string(), arrays, number, weights.size(3)); across > 0) layer["across"] = across;
    json["layers"].push_back(std::move(layer));
    examples = std::min(examples, weights.size(0));
  }
  if (layers.empty()) throw FileError(fmt::format("{}: holds no weights", path.string()));
  MapAxes const axes(path.string(), arrays, examples);
  for (Index i = 0; i < std::min(examples, static_cast<Index>(extent.examples)); ++i)
    json["examples"].push_back(axes.example(i, extent, shown));
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
  std::error_code unreadable;
  for (auto const& file : files_written(run))
    if (file.starts_with("attention/") && !fs::exists(run / file, unreadable))
      warnings.push_back(fmt::format("{} is missing, though the run had left it", (run / file).string()));
}

std::string maps_json(Material& material, Extent const& extent, bool warn) {
  Json json{{"texts", Json::array()}, {"arms", Json::array()}};
  ShownMaps shown;
  for (auto const& arm : material.arms) {
    for (auto const& folder : arm.folders) {
      if (warn) warn_of_missing(material.folder / folder, material.warnings);
      auto const maps = thinned(maps_in(material.folder / folder), extent.steps);
      if (maps.empty()) continue;
      Json steps = Json::array();
      for (auto const& [step, path] : maps) {
        try {
          steps.push_back(step_json(step, path, extent, shown));
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
  json["texts"] = shown.texts.json();
  if (!shown.pictures.json().empty()) json["pictures"] = shown.pictures.json();
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
