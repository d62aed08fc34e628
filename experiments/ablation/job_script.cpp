#include "experiments/ablation/job_script.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/program/system.hpp"

namespace heed {

namespace {

/// A word of a bash command line, in quotes if necessary; always on one line, since comments hold some.
std::string quoted(std::string const& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  auto const is_control = [](unsigned char c) { return std::iscntrl(c) != 0; };
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
  for (unsigned char const c : name) {
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

}  // namespace

double time_limit(SweepPlan const& plan) { return 300 + 1.5 * plan.longest * std::max(1.0, static_cast<double>(plan.share)); }

double memory_limit(SweepPlan const& plan) {
  constexpr double unit = 256.0 * (1 << 20);
  return unit * std::ceil((1.25 * plan.bytes + unit) / unit);
}

std::string slurm_script(SweepPlan const& plan) {
  auto command = fmt::format("{} --output {}", fmt::join(plan.command | std::views::transform(quoted), " "), quoted(plan.output));
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

}  // namespace heed
