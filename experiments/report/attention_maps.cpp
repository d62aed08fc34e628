#include "experiments/report/attention_maps.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/npz.hpp"
#include "nn/json.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// How much of the maps is shown.
struct Extent {
  std::size_t steps = 8, examples = 6;
  std::int64_t tokens = 64;
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

using Maps = std::vector<std::pair<std::int64_t, fs::path>>;

/// attention/step-*.npz by step.
Maps maps_in(fs::path const& run) {
  Maps maps;
  std::error_code none;
  for (auto const& entry : fs::directory_iterator(run / "attention", none)) {
    auto const name = entry.path().filename().string();
    std::string_view constexpr before = "step-";
    std::int64_t step = 0;
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

/// One layer: [example, head, query, key] as far as the extent goes.
Json layer_json(std::string const& name, Tensor const& weights, Extent const& extent) {
  auto const& shape = weights.shape();
  std::int64_t const examples = std::min(shape[0], static_cast<std::int64_t>(extent.examples)), heads = shape[1];
  std::int64_t const queries = std::min(shape[2], extent.tokens), keys = std::min(shape[3], extent.tokens);
  auto const values = weights.to_vector();
  std::string bytes;
  for (std::int64_t map = 0; map < examples * heads; ++map) {
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        double const weight = values[static_cast<std::size_t>((map * shape[2] + i) * shape[3] + j)];
        bytes += static_cast<char>(std::isnan(weight) ? 0 : std::lround(255 * std::clamp(weight, 0.0, 1.0)));
      }
    }
  }
  return {{"name", name}, {"heads", heads}, {"queries", queries}, {"keys", keys}, {"weights", base64(bytes)}};
}

/// The texts that maps belong to, each once.
class Texts {
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

Json step_json(std::int64_t step, fs::path const& path, Extent const& extent, Texts& texts) {
  auto const arrays = read_npz(path);
  Json json{{"step", step}, {"examples", Json::array()}, {"layers", Json::array()}};
  std::int64_t examples = 0, tokens = 0;
  std::string_view constexpr after = ".weights";
  for (auto const& [name, array] : arrays) {
    if (!name.ends_with(after)) continue;
    Tensor const weights = array.tensor();
    if (weights.rank() != 4 || weights.elements() == 0)
      throw FileError(fmt::format("{}: {} is not [examples, heads, queries, keys]", path.string(), name));
    json["layers"].push_back(layer_json(name.substr(0, name.size() - after.size()), weights, extent));
    examples = weights.shape()[0];
    tokens = std::max({tokens, weights.shape()[2], weights.shape()[3]});
  }
  if (json["layers"].empty()) throw FileError(fmt::format("{}: holds no weights", path.string()));
  std::vector<std::string> labels;
  if (auto const found = arrays.find("labels"); found != arrays.end()) labels = found->second.texts();
  auto const length = static_cast<std::int64_t>(labels.size()) / examples;  // of a text
  for (std::int64_t i = 0; i < std::min(examples, static_cast<std::int64_t>(extent.examples)); ++i) {
    std::vector<std::string> text;
    for (std::int64_t k = 0; k < std::min(tokens, extent.tokens); ++k)
      text.push_back(k < length ? labels[static_cast<std::size_t>(i * length + k)] : std::to_string(k));
    json["examples"].push_back(texts.index(std::move(text)));
  }
  return json;
}

/// The seed in a trial's name, ARM-seedK-HASH; nothing for a single run.
Json seed_of(std::string const& folder) {
  auto const at = folder.rfind("-seed");
  if (at == folder.npos) return nullptr;
  return folder.substr(at + 5, folder.find('-', at + 5) - at - 5);
}

std::string maps_json(Material& material, Extent const& extent, bool warn) {
  Json json{{"texts", Json::array()}, {"arms", Json::array()}};
  Texts texts;
  for (auto const& arm : material.arms) {
    for (auto const& folder : arm.folders) {
      auto const maps = thinned(maps_in(material.folder / folder), extent.steps);
      if (maps.empty()) continue;
      Json steps = Json::array();
      for (auto const& [step, path] : maps) {
        try {
          steps.push_back(step_json(step, path, extent, texts));
        } catch (FileError const& error) {
          if (warn) material.warnings.emplace_back(error.what());
        }
      }
      if (steps.empty()) continue;
      json["arms"].push_back({{"name", arm.name}, {"seed", seed_of(folder)}, {"steps", std::move(steps)}});
      break;
    }
  }
  if (json["arms"].empty()) return "";
  json["texts"] = texts.json();
  return json_text(json);
}

}  // namespace

std::string attention_maps(Material& material, std::size_t budget) {
  Extent extent;
  std::string json = maps_json(material, extent, true);
  while (json.size() > budget && extent.shrink()) json = maps_json(material, extent, false);
  if (json.size() <= budget) return json;
  material.warnings.emplace_back("the attention maps are too large for this page; they lie in attention/ of each trial");
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
