#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utf8proc.h>

#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/example.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

std::string first_of(std::vector<std::string> const& list) {
  std::size_t const count = std::min<std::size_t>(list.size(), 24);
  return fmt::format("{}{}", fmt::join(std::span(list).first(count), ", "), list.size() > count ? ", …" : "");
}

void remark_on_classes(Examples const& examples, std::vector<std::string>& remarks) {
  struct ClassCount {
    Index training = 0, held_out = 0;
    std::string place = {};  ///< of a training example
  };
  std::map<std::string, ClassCount> counts;
  for (auto const& name : examples.classes) counts[name];
  for (Example const& each : examples.training) ++counts[each.label].training, counts[each.label].place = each.place;
  for (Example const& each : examples.held_out) ++counts[each.label].held_out;
  std::vector<std::string> all, single, unknown;
  std::map<std::string, std::vector<std::string>> by_form;
  for (auto const& [name, count] : counts) {
    all.push_back(fmt::format("{} {} + {}", shown(name), count.training, count.held_out));
    by_form[folded(name)].push_back(all.back());
    if (count.training == 1) single.push_back(fmt::format("{} ({})", shown(name), count.place));
    if (count.training == 0 && count.held_out > 0) unknown.push_back(shown(name));
  }
  remarks.push_back(fmt::format("{} classes, training + held-out examples: {}", all.size(), first_of(all)));
  for (auto const& [form, names] : by_form)
    if (names.size() > 1) remarks.push_back("classes that differ in blanks, case or form alone: " + first_of(names));
  if (!single.empty()) remarks.push_back("classes of one training example (a header? data.header: true): " + first_of(single));
  if (!unknown.empty()) remarks.push_back("classes of held-out examples alone: " + first_of(unknown));
}

}  // namespace

std::string folded(std::string_view name) {
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> const made(
      utf8proc_NFKC_Casefold(reinterpret_cast<utf8proc_uint8_t const*>(std::string(name).c_str())), &std::free);
  auto const words = made ? fmt::format("{}", fmt::join(words_of(reinterpret_cast<char const*>(made.get())), " ")) : std::string(name);
  std::string_view const digits = std::string_view(words).substr(words.starts_with('+') ? 1 : 0);
  auto const number = digits.size() < 16 ? parsed_number<double>(digits) : std::nullopt;
  return number ? fmt::format("{}", *number + 0.0) : words;
}

std::vector<std::string> remarks_on(Examples const& examples) {
  auto remarks = examples.remarks;
  if (!examples.training.front().span) remark_on_classes(examples, remarks);
  auto const texts = [](Example const& of) { return fmt::format("{}\n{}\n{}", of.first, of.second, fmt::join(of.options, "\n")); };
  std::unordered_set<std::string> known;
  for (Example const& each : examples.training) known.insert(texts(each));
  auto const twice = std::ranges::count_if(examples.held_out, [&](Example const& each) { return known.contains(texts(each)); });
  if (twice > 0)
    remarks.push_back(fmt::format("{} of {} held-out examples have the texts of a training example", twice, examples.held_out.size()));
  return remarks;
}

}  // namespace heed
