#include "experiments/data/view.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"

namespace heed {
namespace {

// By name, because the order in which files register themselves is not defined.
std::map<std::string, ViewKind>& kinds() {
  static std::map<std::string, ViewKind> all;
  return all;
}

}  // namespace

nlohmann::json View::describe() const { return plain_->describe(); }

bool register_view(ViewKind kind) {
  auto const name = kind.name;
  if (!kinds().emplace(name, std::move(kind)).second) throw Error("view " + name + " is registered twice");
  return true;
}

std::unique_ptr<Dataset> make_view(std::string const& name, std::unique_ptr<Dataset> data, std::uint64_t seed) {
  auto const view = kinds().find(name);
  if (view == kinds().end()) throw Error("there is no view " + name);
  return view->second.make(std::move(data), seed, nullptr);
}

std::unique_ptr<Dataset> viewed(std::unique_ptr<Dataset> data, Choice const& model, std::uint64_t seed) {
  for (Need const& need : needs_of(model)) {
    Signature const given = data->gives();
    if (given.has(need.name)) continue;
    auto const view = kinds().find(need.view);
    bool const possible =
        view != kinds().end() && std::ranges::all_of(view->second.needs, [&](std::string const& part) { return given.has(part); });
    if (!possible)
      throw Error(fmt::format("data.kind: a model of kind {} reads '{}', which these data do not give; they give {}", model.kind, need.name,
                              given.names()));
    data = view->second.make(std::move(data), seed, need.how);
  }
  return data;
}

}  // namespace heed
