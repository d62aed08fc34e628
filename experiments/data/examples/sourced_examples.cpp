#include "experiments/data/examples/sourced_examples.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"
#include "nn/files/json.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

std::vector<SourcedExample> take_articles(std::vector<SourcedExample>& all, double share) {
  std::map<std::string, std::size_t> sizes;
  for (auto const& each : all) ++sizes[each.article];
  std::vector<std::pair<std::uint64_t, std::string>> order;
  Stream const draws(0, "examples.split");
  for (auto const& [article, size] : sizes) order.emplace_back(draws.child(article).bits(0), article);
  std::ranges::sort(order);
  auto const wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(all.size())));
  std::set<std::string> taken;
  std::size_t held = 0;
  for (std::size_t i = 0; i < order.size() && held < wanted; ++i) {
    taken.insert(order[i].second);
    held += sizes[order[i].second];
  }
  auto const rest = std::stable_partition(all.begin(), all.end(), [&](auto const& each) { return !taken.contains(each.article); });
  std::vector<SourcedExample> part(std::make_move_iterator(rest), std::make_move_iterator(all.end()));
  all.erase(rest, all.end());
  return part;
}

void make_unanswerable(std::vector<SourcedExample>& all, double share) {
  std::set<std::pair<std::string, std::string>> const distinct = [&] {
    std::set<std::pair<std::string, std::string>> passages;
    for (auto const& each : all) passages.emplace(each.article, each.example.second);
    return passages;
  }();
  std::vector<std::pair<std::string, std::string>> const passages(distinct.begin(), distinct.end());
  if (!all.empty() && passages.front().first == passages.back().first)
    throw Error("data.unanswerable: all passages of a part are from one article, but a question needs one from another");
  Stream const stream(0, "examples.unanswerable");
  for (auto& [example, article, id] : all) {
    auto const draws = stream.child(id);
    if (example.answers.empty() || draws.uniform(0) >= share) continue;
    std::uint64_t attempt = 1;
    auto const drawn = [&]() -> auto const& { return passages[draws.below(attempt, passages.size())]; };
    while (drawn().first == article) ++attempt;
    example.second = drawn().second;
    example.answers.clear();
  }
}

std::vector<Example> sample_of(std::vector<Example> const& all, Index size, std::uint64_t seed) {
  Stream const draws(seed, "examples.size");
  std::map<std::pair<std::string, bool>, std::vector<std::pair<std::uint64_t, std::size_t>>> by_label;
  for (std::size_t i = 0; i < all.size(); ++i) by_label[{all[i].label, all[i].answers.empty()}].emplace_back(draws.bits(i), i);
  // The r-th of n of a label stands at (r + ½) / n: the first so many of all labels together have each in proportion.
  std::vector<std::tuple<double, std::uint64_t, std::size_t>> order;
  for (auto& [label, members] : by_label) {
    std::ranges::sort(members);
    for (std::size_t r = 0; r < members.size(); ++r)
      order.emplace_back((static_cast<double>(r) + 0.5) / static_cast<double>(members.size()), members[r].first, members[r].second);
  }
  std::ranges::sort(order);
  order.resize(static_cast<std::size_t>(size));
  std::vector<std::size_t> chosen;
  for (auto const& [place, bits, index] : order) chosen.push_back(index);
  std::ranges::sort(chosen);
  std::vector<Example> sample;
  for (auto const index : chosen) sample.push_back(all[index]);
  return sample;
}

std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); decode_utf8(text, i)) starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

namespace {

using SquadJson = nlohmann::json;

/// A member of an object; `place` names the object in messages.
SquadJson const& member(SquadJson const& object, std::string const& place, char const* name, SquadJson::value_t type, char const* wanted) {
  if (!object.is_object()) throw FileError(place + ": is no object");
  auto const found = object.find(name);
  if (found == object.end()) {
    std::vector<std::string> names;
    for (auto const& [key, value] : object.items()) names.push_back(key);
    throw FileError(fmt::format("{}: has no '{}'{}", place, name, did_you_mean(name, names)));
  }
  bool const fits = type == SquadJson::value_t::number_unsigned ? found->is_number_unsigned() : found->type() == type;
  if (!fits) throw FileError(fmt::format("{}: '{}' is no {}", place, name, wanted));
  return *found;
}

std::string text_member(SquadJson const& object, std::string const& place, char const* name) {
  auto text = member(object, place, name, SquadJson::value_t::string, "text").get<std::string>();
  if (text.find_first_not_of(" \t\r\n") == text.npos) throw FileError(fmt::format("{}: '{}' is empty", place, name));
  return text;
}

SquadJson const& list_member(SquadJson const& object, std::string const& place, char const* name) {
  return member(object, place, name, SquadJson::value_t::array, "list");
}

/// A paragraph of an article.
struct Paragraph {
  std::string title, text;
  std::vector<std::size_t> starts;  ///< of its characters
};

Answer read_answer(SquadJson const& json, std::string const& place, Paragraph const& paragraph) {
  Answer answer{text_member(json, place + ": an answer", "text"), 0};
  auto const start = member(json, place + ": an answer", "answer_start", SquadJson::value_t::number_unsigned, "number of a character")
                         .get<std::uint64_t>();
  auto const last = paragraph.starts.size() - 1;
  if (start >= last)
    throw FileError(
        fmt::format("{}: its answer {} begins at character {}, and the passage has {}", place, shown(answer.text), start, last));
  auto const begin = at(paragraph.starts, start);
  answer.start = static_cast<Index>(begin);
  if (paragraph.text.compare(begin, answer.text.size(), answer.text) != 0) {
    auto const end = paragraph.starts[std::min(last, static_cast<std::size_t>(start) + character_starts(answer.text).size() - 1)];
    throw FileError(fmt::format("{}: its answer {} is not at character {} of the passage, where {} stands", place, shown(answer.text),
                                start, shown(paragraph.text.substr(begin, end - begin))));
  }
  return answer;
}

SourcedExample read_question(SquadJson const& json, std::string const& place, Paragraph const& paragraph) {
  SourcedExample read{.example = {}, .article = paragraph.title, .id = text_member(json, place, "id")};
  auto const name = fmt::format("{}: question {}", place.substr(0, place.rfind(": data[")), read.id);
  bool impossible = false;
  if (json.contains("is_impossible"))
    impossible = member(json, name, "is_impossible", SquadJson::value_t::boolean, "true or false").get<bool>();
  read.example.first = text_member(json, name, "question");
  read.example.second = paragraph.text;
  read.example.span = true;
  read.example.place = name;
  auto const& answers = list_member(json, name, "answers");
  if (impossible && !answers.empty()) throw FileError(name + ": 'is_impossible' is true, and there are answers");
  if (!impossible && answers.empty()) throw FileError(name + ": there are no answers; a question without one says is_impossible: true");
  for (auto const& answer : answers) read.example.answers.push_back(read_answer(answer, name, paragraph));
  return read;
}

}  // namespace

std::vector<SourcedExample> read_squad(std::string_view content, std::string const& path) {
  auto const json = parse_json<SquadJson>(without_byte_order_mark(content), path + ": the file");
  std::vector<SourcedExample> all;
  std::set<std::string> ids;
  auto const& articles = list_member(json, path, "data");
  for (std::size_t a = 0; a < articles.size(); ++a) {
    auto const article = fmt::format("{}: data[{}]", path, a);
    Paragraph paragraph{text_member(articles[a], article, "title"), {}, {}};
    auto const& paragraphs = list_member(articles[a], article, "paragraphs");
    for (std::size_t p = 0; p < paragraphs.size(); ++p) {
      auto const place = fmt::format("{}.paragraphs[{}]", article, p);
      paragraph.text = text_member(paragraphs[p], place, "context");
      paragraph.starts = character_starts(paragraph.text);
      auto const& questions = list_member(paragraphs[p], place, "qas");
      for (std::size_t q = 0; q < questions.size(); ++q) {
        all.push_back(read_question(questions[q], fmt::format("{}.qas[{}]", place, q), paragraph));
        if (!ids.insert(all.back().id).second) throw FileError(all.back().example.place + ": there are two of this id");
      }
    }
  }
  if (all.empty()) throw FileError(path + ": there are no questions");
  return all;
}

}  // namespace heed
