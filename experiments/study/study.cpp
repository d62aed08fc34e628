#include "experiments/study/study.hpp"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/parallel.hpp"
#include "experiments/config/table.hpp"
#include "experiments/report/report.hpp"
#include "experiments/run/csv.hpp"
#include "experiments/run/file_kind.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/list_topic.hpp"
#include "experiments/run/record.hpp"
#include "experiments/run/result_file.hpp"
#include "experiments/run/signals.hpp"
#include "experiments/run/system.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// The whole file of a study.
struct StudyFile : Settings {
  std::string name = "${study.kind}";
  std::int64_t seed = 1;
  Choice study = choice_of<StudyKind>();

  std::vector<Field> fields() override {
    return {{.name = "name", .target = &name, .help = "name of the study's folder; may contain ${key.path}"},
            {.name = "seed", .target = &seed, .help = "random seed", .least = 0, .greatest = 9e15},
            {.name = "study", .target = &study, .help = "the kind of study", .required = true}};
  }
};

StudyFile load_study(RunOptions const& options) {
  Document document = load(options.config);
  for (auto const& override : options.overrides) assign(document, override);
  StudyFile file;
  fill(document, file);
  check_folder_name(place_of(document, "name"), "name", file.name);
  return file;
}

/// Throws FolderError if the folder holds anything but this study.
void compare(fs::path const& folder, StudyFile& file) {
  if (!fs::exists(folder / "config.yaml")) return;
  auto const differing = differing_keys(load_kept(folder).root, tree(file));
  if (differing.empty()) return;
  throw FolderError(fmt::format(
      "{}: holds another configuration; what differs: {} (give another name or --output, or --fresh to put the old folder aside)",
      folder.string(), fmt::join(differing, ", ")));
}

/// The files of a study in its folder.
struct FinishedStudy {
  bool finished = false;
  double seconds = 0;                         ///< of measuring
  std::vector<std::vector<std::string>> csv;  ///< empty if nothing was kept
  ReadFiles read;                             ///< what it was measured with
};

FinishedStudy left_in(fs::path const& folder) {
  auto summary = find_json(folder / "summary.json");
  if (!summary || !summary->is_object()) return {};
  auto const seconds = summary->find("time.seconds");
  FinishedStudy left{(*summary)["finished"] == true,
                     seconds != summary->end() && seconds->is_number() ? seconds->get<double>() : 0,
                     {},
                     read_files_of(summary->value("read", nlohmann::ordered_json()))};
  auto const csv = read_if_there(folder / "results.csv");
  if (!csv || left.finished) return left;
  try {
    check_written(folder, "results.csv");
    left.csv = parse_csv(*csv);
  } catch (FileError const& error) {  // or written by a process that was killed before it wrote the summary
    fmt::print(stderr, "heed: {}; its cells are measured again\n", error.what());
  }
  return left;
}

std::string in_markdown(StudyTable const& table) {
  for (auto const& row : table.rows) {
    if (row.size() != table.rows.front().size())
      throw Error(
          fmt::format("the table '{}' has a row of {} cells under {} headings", table.title, row.size(), table.rows.front().size()));
  }
  std::string page = fmt::format("\n## {}\n\n", table.title) + markdown_row(table.rows.front()) +
                     markdown_row(std::vector<std::string>(table.rows.front().size(), "---"));
  for (std::size_t i = 1; i < table.rows.size(); ++i) page += markdown_row(table.rows[i]);
  return page;
}

void write_study(fs::path const& folder, StudyFile& file, StudyResult const& result, ReadFiles const& read, double seconds, bool finished) {
  std::string csv;
  for (auto const& row : result.csv) csv += csv_line(row);
  write_atomically(folder / "results.csv", csv);

  std::string page = fmt::format("# {}\n", file.name);
  for (auto const& sentence : result.sentences) page += fmt::format("\n{}\n", sentence);
  for (auto const& table : result.tables) page += in_markdown(table);
  write_atomically(folder / "summary.md", page);

  nlohmann::ordered_json summary{{"study", file.study.kind}, {"name", file.name}, {"finished", finished}, {"seed", file.seed}};
  for (auto const& [name, value] : result.figures) summary["figures"][name] = number(value);
  summary["sentences"] = result.sentences;
  for (auto const& table : result.tables)
    summary["tables"].push_back({{"title", table.title}, {"rows", table.rows}, {"detail", table.detail}});
  if (!read.empty()) summary["read"] = to_json(read);
  summary["time.seconds"] = seconds;
  summary["environment"] = environment();
  summary["configuration"] = emit(file);
  write_summary(folder, summary, {"results.csv"});
}

}  // namespace

std::unique_ptr<Settings> study_file() { return std::make_unique<StudyFile>(); }

std::optional<StudyResult> measure(Choice const& study, StudyContext const& context) {
  return Registry<StudyKind>::at(study.kind, "study.kind: there is no").measure(*study.settings, context);
}

bool is_study(Document const& document) { return document.root.entry("study") != nullptr; }

Exit check_study(RunOptions const& options) {
  StudyFile file = load_study(options);
  if (!options.quiet) fmt::print("{}", emit(file));
  return Exit::done;
}

Exit run_study(RunOptions const& options) {
  StudyFile file = load_study(options);
  fs::path const path = options.places.output / file.name;
  if (options.fresh) put_aside(path);
  FolderLock const lock(path);
  CommitCheck const check([&] { lock.check_held(); });
  compare(path, file);
  FinishedStudy left = left_in(path);
  if (left.finished) {
    if (!options.quiet) fmt::print("{}: finished already (--fresh begins anew)\n", path.string());
    if (!has_report(path)) write_report(path, options.quiet);
    return Exit::done;
  }
  // Threads measure side by side what an ablation's jobs would.
  if (options.threads || options.jobs) set_threads(static_cast<int>(options.threads.value_or(1) * options.jobs.value_or(1)));
  write_atomically(path / "config.yaml", emit(file));
  note_signals();
  using Clock = std::chrono::steady_clock;
  auto const began = Clock::now();
  auto const seconds = [&] { return left.seconds + seconds_since(began); };
  StudyContext context{.name = file.name, .seed = static_cast<std::uint64_t>(file.seed), .places = options.places, .quiet = options.quiet};
  context.places.config_folder = fs::absolute(options.config).parent_path();
  context.kept = std::move(left.csv);
  ReadFiles read;
  context.note_read = [&](std::string const& of, HashedFile const& now) {
    read[of] = now;
    if (auto const difference = changed(left.read, read))
      throw FolderError(
          fmt::format("{}: the measurements so far used another content of a file: {} (put the file back, or --fresh begins anew)",
                      path.string(), *difference));
  };
  context.keep = [&](StudyResult const& so_far) { write_study(path, file, so_far, read, seconds(), false); };
  context.unfinished = path / "unfinished";
  auto const result = measure(file.study, context);
  if (!result) {
    if (fs::exists(path / "results.csv")) write_report(path, true);
    auto const message = fmt::format("{}: what was measured is kept; the same command goes on from there\n", path.string());
    if (!options.quiet) std::fputs(message.c_str(), stderr);  // which does not throw where the terminal is gone
    return Exit::interrupted;
  }
  write_study(path, file, *result, read, seconds(), true);
  std::error_code ignored;
  fs::remove_all(context.unfinished, ignored);
  write_report(path, true);
  if (options.quiet) return Exit::done;
  for (auto const& table : result->tables) {
    if (!table.detail) fmt::print("{}\n{}\n", table.title, heed::table(table.rows));
  }
  for (auto const& sentence : result->sentences) fmt::print("{}\n", sentence);
  fmt::print("{}: report.html, summary.md, results.csv ({:.1f} s)\n", path.string(), seconds());
  return Exit::done;
}

namespace {

Declared<FileKind> const file_kind{{"study", is_study, run_study, check_study, study_file}};
Declared<ListTopic> const studies_topic{choice_topic(14, "studies", "studies; with NAME: its keys", [] { return choice_of<StudyKind>(); })};

}  // namespace

}  // namespace heed
