#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/files.hpp"
#include "nn/files/json.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

using SquadJson = nlohmann::json;

/// A member of an object; `location` names the object in messages.
SquadJson const& member(SquadJson const& object, std::string const& location, char const* name, SquadJson::value_t type,
                        char const* wanted) {
  if (!object.is_object()) throw FileError(location + ": is no object");
  auto const found = object.find(name);
  if (found == object.end()) {
    auto const names = mapped(object.items(), [](auto const& item) { return item.key(); });
    throw FileError(fmt::format("{}: has no '{}'{}", location, name, did_you_mean(name, names)));
  }
  bool const fits = type == SquadJson::value_t::number_unsigned ? found->is_number_unsigned() : found->type() == type;
  if (!fits) throw FileError(fmt::format("{}: '{}' is no {}", location, name, wanted));
  return *found;
}

std::string text_member(SquadJson const& object, std::string const& location, char const* name) {
  auto text = member(object, location, name, SquadJson::value_t::string, "text").get<std::string>();
  if (text.find_first_not_of(" \t\r\n") == text.npos) throw FileError(fmt::format("{}: '{}' is empty", location, name));
  return text;
}

SquadJson const& list_member(SquadJson const& object, std::string const& location, char const* name) {
  return member(object, location, name, SquadJson::value_t::array, "list");
}

/// A paragraph of an article.
struct Paragraph {
  std::string title, text;
  std::vector<std::size_t> starts;  ///< of its characters
};

Answer read_answer(SquadJson const& json, std::string const& location, Paragraph const& paragraph) {
  Answer answer{text_member(json, location + ": an answer", "text"), 0};
  auto const start = member(json, location + ": an answer", "answer_start", SquadJson::value_t::number_unsigned, "number of a character")
                         .get<std::uint64_t>();
  auto const last = paragraph.starts.size() - 1;
  if (start >= last)
    throw FileError(
        fmt::format("{}: its answer {} begins at character {}, and the passage has {}", location, shown(answer.text), start, last));
  auto const begin = at(paragraph.starts, start);
  answer.start = static_cast<Index>(begin);
  if (paragraph.text.compare(begin, answer.text.size(), answer.text) != 0) {
    auto const end = paragraph.starts[std::min(last, static_cast<std::size_t>(start) + character_starts(answer.text).size() - 1)];
    throw FileError(fmt::format("{}: its answer {} is not at character {} of the passage, where {} stands", location, shown(answer.text),
                                start, shown(paragraph.text.substr(begin, end - begin))));
  }
  return answer;
}

SourcedExample read_question(SquadJson const& json, std::string const& location, Paragraph const& paragraph, bool labelled) {
  SourcedExample read{.example = {}, .article = paragraph.title, .id = text_member(json, location, "id")};
  auto const name = fmt::format("{}: question {}", location.substr(0, location.rfind(": data[")), read.id);
  read.example.first = text_member(json, name, "question");
  read.example.second = paragraph.text;
  read.example.span = true;
  read.example.location = name;
  if (!labelled) return read;
  bool const impossible =
      json.contains("is_impossible") && member(json, name, "is_impossible", SquadJson::value_t::boolean, "true or false").get<bool>();
  auto const& answers = list_member(json, name, "answers");
  if (impossible && !answers.empty()) throw FileError(name + ": 'is_impossible' is true, and there are answers");
  if (!impossible && answers.empty()) throw FileError(name + ": there are no answers; a question without one says is_impossible: true");
  for (auto const& answer : answers) read.example.answers.push_back(read_answer(answer, name, paragraph));
  return read;
}

/// SQuAD's JSON, version 1.1 or 2 (Rajpurkar et al. 2016, 2018): the question is `first`, the paragraph `second`. A question with
/// `is_impossible` has no answers; plausible answers are ignored. Throws FileError naming file and question for other formats and for an
/// answer that is not at its position in the paragraph.
std::vector<SourcedExample> read_squad(std::string_view content, std::string const& path, FileExamples const& keys,
                                       std::vector<std::string>&) {
  auto const json = parse_json<SquadJson>(without_byte_order_mark(content), path + ": the file");
  std::vector<SourcedExample> all;
  std::set<std::string> ids;
  auto const& articles = list_member(json, path, "data");
  for (std::size_t a = 0; a < articles.size(); ++a) {
    auto const article = fmt::format("{}: data[{}]", path, a);
    Paragraph paragraph{text_member(articles[a], article, "title"), {}, {}};
    auto const& paragraphs = list_member(articles[a], article, "paragraphs");
    for (std::size_t p = 0; p < paragraphs.size(); ++p) {
      auto const location = fmt::format("{}.paragraphs[{}]", article, p);
      paragraph.text = text_member(paragraphs[p], location, "context");
      paragraph.starts = character_starts(paragraph.text);
      auto const& questions = list_member(paragraphs[p], location, "qas");
      for (std::size_t q = 0; q < questions.size(); ++q) {
        all.push_back(read_question(questions[q], fmt::format("{}.qas[{}]", location, q), paragraph, keys.labelled));
        if (!ids.insert(all.back().id).second) throw FileError(all.back().example.location + ": there are two of this id");
      }
    }
  }
  if (all.empty()) throw FileError(path + ": there are no questions");
  return all;
}

Declared<ExampleFormat> const squad_format{
    {.order = 5,
     .name = "squad",
     .ending = ".json",
     .help = "SQuAD's JSON, .json",
     .sample = R"({"data": [{"title": "t", "paragraphs": [{"context": "a b c", "qas": [
         {"id": "1", "question": "what", "answers": [{"text": "b", "answer_start": 2}]},
         {"id": "2", "question": "who", "answers": [{"text": "c", "answer_start": 4}]}]}]}]})",
     .without = {"columns", "header", "second", "options", "classes", "names", "answer", "encoding", "leave_out"},
     .why = "is not used with SQuAD's format",
     .passages = true,
     .read = read_squad}};

}  // namespace
}  // namespace heed
