#include "experiments/data/examples/text_template.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"

namespace heed {

TextTemplate::TextTemplate(std::string const& written, std::string const& key, std::vector<std::string> const& columns,
                           std::string const& origin) {
  for (std::size_t at = 0; at < written.size(); ++at) {
    bool const doubled = written.substr(at, 2) == "{{" || written.substr(at, 2) == "}}";
    if (doubled) ++at;
    if (doubled || (written[at] != '{' && written[at] != '}')) {
      end_ += written[at];
      continue;
    }
    auto const close = written.find('}', at);
    if (written[at] == '}' || close == written.npos)
      throw Error(
          fmt::format("{}: {} has a brace without its other; columns are written {{name}}, a brace itself twice", key, shown(written)));
    auto const name = written.substr(at + 1, close - at - 1);
    auto const column = std::ranges::find(columns, name);
    if (column == columns.end())
      throw Error(fmt::format("{}: there is no column {}{}; {} has {}", key, shown(name), did_you_mean(name, columns), origin,
                              fmt::join(columns, ", ")));
    pieces_.push_back({std::move(end_), static_cast<std::size_t>(column - columns.begin())});
    end_.clear();
    at = close;
  }
}

std::string TextTemplate::of(std::vector<std::string> const& fields) const {
  std::string text;
  for (auto const& [before, column] : pieces_) text += before + fields[column];
  return text + end_;
}

}  // namespace heed
