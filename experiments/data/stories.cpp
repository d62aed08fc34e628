// Text to pre-train on for the synthetic tasks of labelled examples (experiments/data/examples/tasks): each line is the text of an example
// without its label; unacceptable and untrue ones are left out.
//
//     howls rose bites dog lathe wolves sings runs                                     topic
//     the dogs near the old king howl .                                                agreement, continuation
//     king dog rose mill dog before mill                                               order
//     king mill ; nun vine ; boy clocks ; queen dog ; find nuns nun vine        matching_span

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/text.hpp"

namespace heed {

namespace {

/// A task of labelled examples, with the defaults of its keys; null: it is another kind of data.
std::shared_ptr<ExampleTask> example_task(Choice::Option const& option) { return std::dynamic_pointer_cast<ExampleTask>(option.make()); }

std::vector<std::string> example_task_names() {
  std::vector<std::string> names;
  for (auto const& option : choice_of<DataKind>().options)
    if (example_task(option)) names.push_back(option.name);
  return names;
}

struct StoriesSettings : TextSettings {
  std::vector<std::string> tasks;
  Index lines = 20'000, held_out_lines = 1'000;

  StoriesSettings() { validation = 0; }  // the held-out text is one of its own

  std::vector<Field> fields() override {
    auto all = TextSettings::fields();
    std::erase_if(all, [](Field const& field) { return field.name == "path" || field.name == "name" || field.name == "validation"; });
    return extended(all, {field(&tasks, "tasks", "tasks whose texts are generated, in turn (default: all)"),
                          field(&lines, "lines", "lines of the training text").in(1, 1e7),
                          field(&held_out_lines, "held_out_lines", "lines of the held-out text, the same for every seed").in(1, 1e6)});
  }
  std::optional<std::string> contradiction() override {
    auto const known = example_task_names();
    for (auto const& task : tasks)
      if (std::ranges::find(known, task) == known.end())
        return fmt::format("tasks: there is no task '{}'{}; there are {}", task, did_you_mean(task, known), fmt::join(known, ", "));
    return std::nullopt;
  }
};

/// The text of an example with its right option or answer.
std::string full_text(Example const& example) {
  auto text = example.first;
  if (example.span) return example.second + " " + example.answers.front().text;
  if (!example.second.empty()) text += " " + example.second;
  if (!example.options.empty()) text += " " + at(example.options, std::stoi(example.label));
  return text;
}

/// `lines` lines, written by the tasks in turn.
std::string text_of(std::vector<std::shared_ptr<ExampleTask>> const& tasks, Index lines, Stream const& stream) {
  std::string text;
  for (Index line = 0; line < lines; ++line) {
    auto const& task = *tasks[static_cast<std::size_t>(line) % tasks.size()];
    auto const draws = stream.child(static_cast<std::uint64_t>(line));
    auto const answers = static_cast<std::uint64_t>(task.answers());
    Example example;
    for (std::uint64_t attempt = 0; attempt == 0 || (!example.label.empty() && example.label == task.untrue()); ++attempt)
      example = task.write(static_cast<Index>(draws.below(attempt, answers)), draws.child(attempt));
    text += full_text(example) + "\n";
  }
  return text;
}

/// A text that is in no file; what was read are the files of the tasks, and of the tokenizer.
struct Stories : TextDataset {
  Stories(TextFiles const& text, StoriesSettings const& settings, DataContext const& context, TextFiles const& held_out, ReadFiles read)
      : TextDataset(text, "stories", settings, context, held_out, "stories, held out") {
    for (char const* const in_no_file : {"text", "held_out"}) facts_.files.erase(in_no_file);
    read.merge(facts_.files);
    facts_.files = std::move(read);
  }
};

std::unique_ptr<Dataset> open_stories(StoriesSettings const& settings, DataContext const& context) {
  std::vector<std::shared_ptr<ExampleTask>> tasks;
  ReadFiles read;
  for (auto const& option : choice_of<DataKind>().options) {
    bool const wanted = settings.tasks.empty() || std::ranges::find(settings.tasks, option.name) != settings.tasks.end();
    auto const task = wanted ? example_task(option) : nullptr;
    if (!task) continue;
    tasks.push_back(task);
    read.merge(task->open(context));
  }
  auto const told_by = [&](Index lines, Stream const& stream) { return TextFiles{text_of(tasks, lines, stream), {0}}; };
  return std::make_unique<Stories>(told_by(settings.lines, Stream(context.seed, "stories")), settings, context,
                                   told_by(settings.held_out_lines, Stream(0, "stories.held_out")), std::move(read));
}

Declared<DataKind> const stories_data{
    data_kind("stories", "text generated by the synthetic tasks of labelled examples, for pre-training", open_stories)};

}  // namespace

}  // namespace heed
