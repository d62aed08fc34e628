#include "experiments/train/finished_run.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/config/table.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/train/ranks.hpp"

namespace heed {

namespace {

void add_selection(nlohmann::ordered_json& summary, FinishedRun const& run) {
  if (auto const* const best = run.kept())
    summary["best"] = {{"step", best->step},
                       {"metric", run.settings.train.select.metric},
                       {"value", number(best->value)},
                       {"evaluations", run.selection.evaluations()}};
  if (auto const why = run.selection.stop(); why && run.trainer.step() < run.settings.train.steps) {
    summary["stopped_at"] = run.trainer.step();
    summary["stopped_of"] = run.settings.train.steps;
    summary["stopped_because"] = *why;
  }
}

/// What the values are held against. (`yardsticks` is the file format's word for reference losses.)
void add_references(nlohmann::ordered_json& summary, Trainer const& trainer) {
  for (auto const& [name, loss] : trainer.reference_losses()) summary["yardsticks"][name] = loss;
  for (auto const& [name, values] : trainer.data().facts().baselines)
    for (auto const& [metric, value] : values)
      summary["baselines"].push_back({{"name", name}, {"metric", "validation." + metric}, {"value", number(value)}});
}

/// For summary.json: the run, its step and checkpoint, and what it was itself continued from ("continued").
nlohmann::ordered_json lineage_of(ContinuedRun const& from) {
  nlohmann::ordered_json lineage{
      {"run", from.folder.string()}, {"step", from.checkpoint.step}, {"sha256", from.file.sha256}, {"lr", from.rate}};
  if (auto before = in_summary(from.folder, "continued"); !before.is_null()) lineage["continued"] = std::move(before);
  return lineage;
}

/// That training has made the loss much larger (twice, and by half a nat), if it has.
std::optional<std::string> grown_loss(std::filesystem::path const& folder) {
  auto const history = read_history(folder);
  auto const found = history.find("loss");
  if (found == history.end()) return std::nullopt;
  auto const [first, last] = std::pair(found->second.front().second, found->second.back().second);
  if (!(last > 2 * first && last > first + 0.5)) return std::nullopt;
  return fmt::format("training ended with a loss of {}, far above its first one of {}: the learning rate may be too high",
                     short_number(last, 4), short_number(first, 4));
}

}  // namespace

double value_or_nan(Row const& row, std::string const& name) {
  double const* const value = row.find(name);
  return value != nullptr ? *value : std::nan("");
}

double tokens_per_second(Index tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }

Selection::Best const* FinishedRun::kept() const { return settings.train.keeps_best() && selection.best() ? &*selection.best() : nullptr; }

Row FinishedRun::values() const {
  Row all{last.step, {}};
  for (auto const& [name, value] : last.values) {
    double const* const best = kept() != nullptr && MetricKey::of(name).is_held_out() ? kept()->row.find(name) : nullptr;
    all.set(name, best != nullptr ? *best : value);
  }
  return all;
}

nlohmann::ordered_json summary_of(FinishedRun const& run, std::filesystem::path const& folder) {
  Trainer const& trainer = run.trainer;
  nlohmann::ordered_json summary{
      {"name", run.settings.name}, {"finished", true}, {"steps", trainer.step()}, {"parameters", trainer.parameters().elements()}};
  for (auto const& [name, value] : run.values().values) summary[name] = number(value);
  add_selection(summary, run);
  add_references(summary, trainer);
  summary["time.seconds"] = run.seconds;
  summary["time.tokens_per_second"] = number(tokens_per_second(trainer.tokens_read(), run.seconds_here));
  summary["memory.peak"] = static_cast<Index>(run.memory_peak);
  summary["data"] = trainer.data().describe();
  if (auto const grown = grown_loss(folder)) summary["grown"] = *grown;
  if (auto const cut = trainer.data().facts().cut_short(trainer.model().context())) summary["cut"] = *cut;
  if (auto const counts = interruptions_of(folder); counts.any()) summary["interruptions"] = as_json(counts);
  auto const& read = trainer.files_read();
  if (auto const init = read.find("init.from"); init != read.end())
    summary["init"] = {{"file", init->second.file}, {"sha256", init->second.sha256}, {"remark", trainer.start_remark()}};
  if (auto const& from = trainer.continued()) summary["continued"] = lineage_of(*from);
  if (&trainer.trained() != &trainer.parameters()) summary["trained"] = trainer.trained().elements();
  summary["read"] = to_json(read);
  summary["environment"] = environment();
  if (ranks().several()) summary["environment"]["processes"] = ranks().size();
  summary["configuration"] = emit(run.settings);
  return summary;
}

void print_result(FinishedRun const& run, std::filesystem::path const& folder) {
  Row const last = run.values();
  fmt::print("{}: {} steps in {:.1f} s, peak memory of tensors {:.0f} MB\n", folder.string(), run.steps_here, run.seconds_here,
             run.memory_peak / 1e6);
  auto const why = run.selection.stop();
  if (why && run.trainer.step() < run.settings.train.steps) fmt::print("  stopped early: {}\n", *why);
  if (auto const* const best = run.kept())
    fmt::print("  kept: step {}, the best of {} evaluations by {}; selected on these data, its value is optimistic\n", best->step,
               run.selection.evaluations(), run.settings.train.select.metric);
  if (auto const grown = grown_loss(folder)) fmt::print("  {}\n", *grown);
  double const loss = value_or_nan(last, "validation.loss");
  if (!last.values.empty())
    fmt::print("  validation loss {} nat per {}, accuracy {:.2f} %\n", short_number(loss, 4), run.trainer.model().terms().front().name,
               100 * value_or_nan(last, "validation.accuracy"));
  if (double const* const averaged = last.find("validation.ema.loss"))
    fmt::print("  with averaged weights {}\n", short_number(*averaged, 4));
  for (auto const& [name, reference_loss] : run.trainer.reference_losses())
    fmt::print("  {:<10} {:.4f} (this run {})\n", name, reference_loss, short_number(loss - reference_loss, 4, true));
  for (auto const& [name, values] : run.trainer.data().facts().baselines)
    for (auto const& [metric, value] : values)
      fmt::print("  {} of {}: {:.4f} (this run {})\n", metric, name, value,
                 short_number(value_or_nan(last, "validation." + metric) - value, 4, true));
}

}  // namespace heed
