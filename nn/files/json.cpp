#include "nn/files/json.hpp"

#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"

namespace heed {

template <class Json>
Json parse_json(std::string_view text, std::string const& what, int max_levels) {
  // The parser takes a zero for the end of its input and would not look at what follows.
  if (auto const zero = text.find('\0'); zero != text.npos) throw FileError(fmt::format("{} is not JSON: a zero at byte {}", what, zero));

  std::vector<std::set<std::string>> seen;  // names of the objects that are open
  auto const check = [&](int depth, typename Json::parse_event_t event, Json& value) {
    bool const opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= max_levels) throw FileError(fmt::format("{} is nested more than {} deep", what, max_levels));
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key && !seen.back().insert(value.template get_ref<std::string const&>()).second)
      throw FileError(fmt::format("{} names {} twice", what, json_text(value)));
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (nlohmann::json::parse_error const& error) {
    bool const encoding = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    throw FileError(fmt::format("{} is not {}: error at byte {}", what, encoding ? "valid UTF-8" : "JSON", error.byte));
  } catch (nlohmann::json::exception const&) {  // a number beyond double's range
    throw FileError(fmt::format("{} is not JSON: a number is out of range", what));
  }
}

template nlohmann::json parse_json(std::string_view, std::string const&, int);
template nlohmann::ordered_json parse_json(std::string_view, std::string const&, int);

std::string json_text(nlohmann::ordered_json const& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace heed
