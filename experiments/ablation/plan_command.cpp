#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "autograd/memory.hpp"
#include "autograd/parallel.hpp"
#include "autograd/processor/processor.hpp"
#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/check_arms.hpp"
#include "experiments/ablation/child.hpp"
#include "experiments/ablation/jobs.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/config/table.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/train.hpp"

namespace heed {

namespace {

using Clock = std::chrono::steady_clock;

struct Cost {
  double start = 0, step = 0, evaluation = 0;
  double bytes = 0;
  double disk = 0;  ///< bytes of its checkpoint, and of its best weights

  double of(TrainSettings const& train) const {
    auto const evaluations = static_cast<double>((train.steps + train.evaluate.every - 1) / train.evaluate.every + 1);
    return start + static_cast<double>(train.steps) * step + evaluations * evaluation;
  }
};

enum class Stage { check, measure };

/// Stage::check only creates the trainer. Stage::measure also makes a few training steps, of which the fastest counts, and one evaluation.
Cost tried(Ablation const& ablation, Arm const& arm, Stage stage) {
  auto const experiment = trial_of(ablation, arm.name, arm.changes, ablation.seeds.front());
  Cost cost;
  auto const start = Clock::now();
  Trainer trainer(experiment, true);
  cost.start = seconds_since(start);
  if (stage == Stage::check) {
    check_arm(ablation, arm, trainer);
    return cost;
  }
  Checkpoint const made = trainer.checkpoint();
  auto const bytes = [](Checkpoint::Tensors const& tensors) {
    double sum = 0;
    for (auto const& [name, tensor] : tensors)
      sum += static_cast<double>(tensor.elements()) * static_cast<double>(bytes_of(tensor.dtype()));
    return sum;
  };
  cost.disk = bytes(made.state) + bytes(made.parameters) * (experiment.settings.train.keeps_best() ? 2 : 1);
  cost.step = 1e9;
  for (auto const began = Clock::now(); !trainer.finished() && (trainer.step() < 3 || seconds_since(began) < 0.3);) {
    Row row;
    auto const before = Clock::now();
    trainer.train_step(row);
    cost.step = std::min(cost.step, seconds_since(before));
  }
  Row row;
  auto const before = Clock::now();
  trainer.evaluate(row);
  cost.evaluation = seconds_since(before);
  ProbeSettings probes = experiment.settings.probes;
  probes.iterations = 1;  // more take no more memory
  TrainSettings const& train = experiment.settings.train;
  Prober(probes, train.batch, train.label_smoothing, trainer.model(), trainer.parameters(), trainer.data(), train.recompute).observe(row);
  cost.bytes = static_cast<double>(memory_use().peak);
  return cost;
}

/// tried() in a process of its own, as trials are run. Nothing if it fails: it has printed why, and `exit` is set to its exit code.
std::optional<Cost> probe(Ablation const& ablation, Arm const& arm, Stage stage, int threads, Exit& exit) {
  int ends[2];
  if (::pipe(ends) != 0) throw Error(fmt::format("no pipe can be made: {}", std::strerror(errno)));
  Exit const ended = in_child(fmt::format("the trial run of arm '{}'", arm.name), [&] {
    set_threads(threads);
    Cost const cost = tried(ablation, arm, stage);
    return ::write(ends[1], &cost, sizeof cost) == sizeof cost ? Exit::done : Exit::other;
  });
  ::close(ends[1]);
  Cost cost;
  bool const whole = ::read(ends[0], &cost, sizeof cost) == sizeof cost;
  ::close(ends[0]);
  if (whole) return cost;
  exit = ended == Exit::done ? Exit::other : ended;
  return std::nullopt;
}

/// What so many paired seeds can tell of so many arms beside the baseline: the detectable difference, and by the sign-flip test the
/// smallest p, by evidence the fewest pairs.
std::string power_of(std::size_t seeds, std::size_t arms, bool by_evidence) {
  auto const enough = seeds_for_verdict(by_evidence, arms);
  std::string text = by_evidence
                         ? fmt::format("at most {} paired seeds: evidence needs {} for a verdict, of one sign and size", seeds, enough)
                         : fmt::format("{} paired seeds: the smallest p of the sign-flip test is {:.3g}", seeds, smallest_p(seeds));
  if (arms == 0) return text + "\n";
  if (seeds < enough)
    return text + fmt::format("\nwarning: they cannot show any difference at p ≤ 0.05; {} seeds can (seeds={})\n", enough, enough);
  auto const effect = by_evidence ? difference_told(seeds, 0.05 / static_cast<double>(arms)) : detectable_effect(seeds, arms);
  if (!effect) return text + "\n";
  return text + fmt::format(
                    "; if one of {} differs from the baseline by {:.2f} standard deviations (of paired differences), {}, corrected for "
                    "all, finds it with 80 % power\n",
                    plural(arms, "arm"), *effect, by_evidence ? "evidence" : "the test");
}

std::string absolute_path(std::filesystem::path const& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).lexically_normal().string();
}

/// The command that trains a share of the trials, without --output; with absolute paths, so that it can be called from any folder.
std::vector<std::string> command_of(RunOptions const& options, Workers const& workers) {
  std::error_code unknown;
  std::filesystem::path const program = std::filesystem::canonical(program_file(), unknown);
  std::vector<std::string> command{unknown ? "heed" : program.string(), "run", absolute_path(options.config)};
  std::ranges::copy(options.overrides, std::back_inserter(command));
  if (auto const data = absolute_path(options.folders.data); !data.empty()) command.insert(command.end(), {"--data", data});
  command.insert(command.end(), {"--threads", std::to_string(workers.threads), "--jobs", "1"});
  return command;
}

// ---------------------------------------------------------------- the script for Slurm

/// A word of a bash command line, in quotes if necessary; always on one line, since comments hold some.
std::string quoted(std::string const& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  auto const is_control = [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; };
  bool const controls = std::ranges::any_of(word, is_control);
  std::string result = controls ? "$'" : "'";
  for (char const c : word) {
    if (is_control(c))
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else if (c == '\'')
      result += controls ? "\\'" : "'\\''";
    else
      result += controls && c == '\\' ? std::string("\\\\") : std::string(1, c);
  }
  return result + "'";
}

/// A job's name as batch systems accept it: lower-case letters, digits and '-', at most 50 characters.
std::string job_name(std::string const& name) {
  std::string result;
  for (char const each : name) {
    auto const c = static_cast<unsigned char>(each);
    if (std::isalnum(c) != 0)
      result += static_cast<char>(std::tolower(c));
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  result.resize(std::min<std::size_t>(result.size(), 50));
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result.empty() ? "heed" : result;
}

/// A duration in Slurm's notation, rounded up to minutes: 1-02:30:00.
std::string slurm_time(double seconds) {
  auto const minutes = static_cast<Index>(std::ceil(seconds / 60));
  auto const days = minutes / 1440, hours = minutes / 60 % 24;
  return fmt::format("{}{:02}:{:02}:00", days > 0 ? fmt::format("{}-", days) : "", hours, minutes % 60);
}

// ---------------------------------------------------------------- the plan

/// A row for each arm, and their totals: what is left, finished runs, bytes on disk of what is left.
struct AblationPlan {
  TableRows rows{{"arm", "runs", "done", "s/step", "s/run"}};
  SweepPlan left;
  std::size_t done = 0;
  double disk = 0;
  Exit exit = Exit::done;  ///< exit code of an arm that failed
  bool measured = false;   ///< false: the arms were only checked, without training steps
};

std::string script_of(RunOptions const& options, Ablation const& ablation, Workers const& workers, SweepPlan plan) {
  plan.name = ablation.settings.ablation;
  plan.command = command_of(options, workers);
  plan.folder = std::filesystem::current_path().string();
  plan.output = absolute_path(options.folders.output);
  plan.shards = options.shards.has_value();
  plan.tasks = options.shards.value_or(options.tasks.value_or(std::clamp<Index>(static_cast<Index>(plan.trials), 1, 1000)));
  plan.share = (plan.trials + static_cast<std::size_t>(plan.tasks) - 1) / static_cast<std::size_t>(plan.tasks);
  if (plan.shards) {
    auto overrides = options.overrides;
    overrides.push_back(fmt::format("shard=0/{}", plan.tasks));
    plan.share = load_ablation(options.config, overrides, options.folders).trials_in_shard();  // the first has most
  }
  plan.threads = workers.threads;
  plan.machine = processor_name();
  return slurm_script(plan);
}

/// Measured with the first seed. Training steps are made only if every arm can be trained: else heed run would train nothing.
AblationPlan plan_of(Ablation const& ablation, Workers const& workers) {
  AblationPlan plan;
  std::vector<std::optional<Cost>> costs;  // nothing for an arm that failed
  for (Stage const stage : {Stage::check, Stage::measure}) {
    if (plan.exit != Exit::done) break;
    costs.clear();
    plan.measured = stage == Stage::measure;
    for (auto const& arm : ablation.arms) costs.push_back(probe(ablation, arm, stage, static_cast<int>(workers.threads), plan.exit));
  }
  std::vector<std::size_t> done(ablation.arms.size());
  AblationTrials trials;
  trials.look(ablation);
  for (Job const& job : trials.tuned.jobs) done[job.arm / ablation.tuning->points.size()] += job.state == Job::State::done ? 1 : 0;
  for (Job const& job : trials.jobs) done[job.arm] += job.state == Job::State::done ? 1 : 0;
  bool const decided = ablation.settings.by_evidence() && !trials.jobs.empty() && !give_out_seeds(ablation, trials.jobs).open;
  std::size_t const tuning = ablation.tuning ? ablation.tuning->points.size() * ablation.tuning->seeds.size() : 0;
  for (std::size_t i = 0; i < ablation.arms.size(); ++i) {
    auto const& arm = ablation.arms[i];
    std::size_t count = ablation.in_shard(i, 0) ? tuning : 0;
    for (std::size_t seed = 0; seed < ablation.seeds.size(); ++seed) count += ablation.in_shard(i, seed) ? 1 : 0;
    if (decided) count = done[i];  // nobody gets the other seeds
    plan.left.trials += count - done[i];
    plan.done += done[i];
    plan.rows.push_back({arm.name, fmt::format("{}", count), done[i] > 0 ? fmt::format("{}", done[i]) : "", "", ""});
    auto& row = plan.rows.back();
    if (!costs[i]) row[3] = plan.measured ? "fails" : "cannot be trained";
    if (!costs[i] || !plan.measured) continue;
    double const each = costs[i]->of(trial_of(ablation, arm.name, arm.changes, ablation.seeds.front()).settings.train);
    auto const left = static_cast<double>(count - done[i]);
    plan.left.seconds += each * left;
    plan.disk += costs[i]->disk * left;
    plan.left.longest = std::max(plan.left.longest, each);
    plan.left.bytes = std::max(plan.left.bytes, costs[i]->bytes);
    row[3] = fmt::format("{:.4f}", costs[i]->step);
    row[4] = fmt::format("{:.1f}", each);
  }
  return plan;
}

}  // namespace

double time_limit(SweepPlan const& plan) { return 300 + 1.5 * plan.longest * std::max(1.0, static_cast<double>(plan.share)); }

double memory_limit(SweepPlan const& plan) {
  constexpr double unit = 256.0 * (1 << 20);
  return unit * std::ceil((1.25 * plan.bytes + unit) / unit);
}

std::string slurm_script(SweepPlan const& plan) {
  auto command = fmt::format("{} --output {}", fmt::join(mapped(plan.command, quoted), " "), quoted(plan.output));
  std::string note = "the tasks share all trials, whatever their number is";
  if (plan.shards) {
    command += fmt::format("/shard-\"$SLURM_ARRAY_TASK_ID\" --shard \"$SLURM_ARRAY_TASK_ID\"/{}", plan.tasks);
    note = fmt::format("each task trains a shard; heed report {}/shard-* --output {} joins them", quoted(plan.output), quoted(plan.output));
  }
  return fmt::format(
      R"(#!/bin/bash
# {trials} trials, the longest about {longest}, {seconds} in all, of at most {megabytes:.0f} MB, on {machine}.
# sbatch this file; {note}.
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={threads}
#SBATCH --mem={memory}M
#SBATCH --time={time}
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%x-%A_%a.log

# What the program needs on this cluster, e.g.
#   module load gcc openblas
# or in a container: srun apptainer exec heed.sif heed run …
cd {folder} || exit 2
code=0
srun {command} || code=$?
# 130: a checkpoint was written, because the time was nearly up or the node is taken. The task goes on when its turn comes again.
if [[ $code == 130 ]]; then scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"; fi
exit $code
)",
      fmt::arg("trials", plan.trials), fmt::arg("longest", clock_time(plan.longest)), fmt::arg("seconds", clock_time(plan.seconds)),
      fmt::arg("megabytes", plan.bytes / 1e6), fmt::arg("machine", plan.machine), fmt::arg("note", note),
      fmt::arg("name", job_name(plan.name)), fmt::arg("last", plan.tasks - 1), fmt::arg("threads", plan.threads),
      fmt::arg("memory", static_cast<Index>(memory_limit(plan)) >> 20), fmt::arg("time", slurm_time(time_limit(plan))),
      fmt::arg("folder", quoted(plan.folder)), fmt::arg("command", command));
}

double planned_seconds(Ablation const& ablation, RunOptions const& options) {
  Workers const workers = workers_for(options);
  auto const plan = plan_of(ablation, workers);
  return plan.exit == Exit::done ? plan.left.seconds / static_cast<double>(workers.jobs) : std::nan("");
}

Exit plan_ablation(RunOptions const& options) {
  Document const document = load(options.config);
  if (auto const* const kind = file_kind_of(document); kind != nullptr && kind->plan != nullptr) return kind->plan(options);
  if (!is_ablation(document))
    throw ConfigError(options.config.string(), "describes a run, not an ablation: heed check prints it, heed run trains it");
  if (options.tasks && options.shards) throw ConfigError("--shards", "does not go with --tasks: there is one task for each shard");
  Ablation const ablation = load_ablation(options);
  Workers const workers = workers_for(options);
  auto const plan = plan_of(ablation, workers);
  if (options.slurm) {
    if (plan.exit == Exit::done) fmt::print("{}", script_of(options, ablation, workers, plan.left));
    return plan.exit;
  }
  fmt::print("{}: {} arms, {} runs{}, {} at a time with {} thread{} each\n\n{}\n", ablation.folder().string(), ablation.arms.size(),
             plan.left.trials + plan.done, plan.done > 0 ? fmt::format(" ({} done already)", plan.done) : "", workers.jobs, workers.threads,
             workers.threads == 1 ? "" : "s", table(plan.rows));
  if (plan.exit == Exit::done)
    fmt::print("about {} (from a few steps of each arm on this machine just now), {} MB of checkpoints\n",
               clock_time(plan.left.seconds / static_cast<double>(workers.jobs)), short_number(plan.disk / 1e6, 1));
  else if (plan.measured)
    fmt::print("no estimate of the time: an arm fails within its first steps\n");
  else
    fmt::print("no estimate of the time: an arm cannot be trained, and heed run would train none\n");
  fmt::print("{}", power_of(ablation.seeds.size(), ablation.arms.size() - 1, ablation.settings.by_evidence()));
  return plan.exit;
}

}  // namespace heed
