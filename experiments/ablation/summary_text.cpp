// The tables of an ablation's summary: for the terminal, in Markdown, and for LaTeX (`heed export ABLATION --format latex`).

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/registry.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/exchange/formats.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/material.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// The table cell of a mean's interval: "[1.965, 2.018]", "none: infinite", or "" if there are too few values for an interval.
std::string interval_cell(NumberFormat const& format, Estimate const& estimate) {
  if (estimate.interval) return format.interval(estimate.interval->low, estimate.interval->high);
  return std::isfinite(estimate.mean) ? "" : "none: infinite";
}

/// The table cell of seeds with a value, out of `asked`: "6", "4/6", "6 (3 diverged)".
std::string seeds_cell(ArmResult const& arm, std::size_t asked) {
  auto text = arm.values.size() == asked ? fmt::format("{}", asked) : fmt::format("{}/{}", arm.values.size(), asked);
  if (!arm.diverged.empty()) text += fmt::format(" ({} diverged)", arm.diverged.size());
  return text;
}

/// "validation.loss (last, lower is better), mean and 95 % interval over 6 seeds". `metric`: its name as it is to be shown.
std::string table_title(AblationResult const& result, std::string const& metric) {
  return fmt::format("{} ({}, {} is better), mean and 95 % interval over {} seeds", metric, result.at, result.better, result.seeds.size());
}

TableRows rows_of(AblationResult const& result) {
  auto const format = result.format();
  TableRows rows{{"arm", with_unit(result.metric), "95 % interval", "difference", "p", "paired t", "effect", "", "seeds", "s/run",
                  "tokens/s", "MB", "tuned"}};
  for (auto const& arm : result.arms) {
    std::vector<std::string> row{arm.name};
    if (auto const& estimate = arm.estimate)
      row.insert(row.end(), {format(estimate->mean), interval_cell(format, *estimate)});
    else
      row.insert(row.end(), {"–", ""});
    if (auto const& c = arm.difference)
      row.insert(row.end(),
                 {shown_difference(format, c->mean, c->interval), fmt::format("{:.2g}", c->p), c->p_t ? fmt::format("{:.2g}", *c->p_t) : "",
                  c->effect ? short_number(*c->effect, 1, true) : "", std::string(name(c->verdict))});
    else
      row.insert(row.end(), {arm.name == result.baseline && arm.estimate ? "baseline" : "", "", "", "", ""});
    auto const cell = [](std::optional<double> value, double unit, int digits) {
      return value ? fmt::format("{:.{}f}", *value * unit, digits) : "";
    };
    row.insert(row.end(), {seeds_cell(arm, result.seeds.size()), cell(arm.seconds, 1, 1), cell(arm.tokens_per_second, 1, 0),
                           cell(arm.memory, 1e-6, 1), arm.tuned_words()});
    rows.push_back(std::move(row));
  }
  if (std::ranges::all_of(result.arms, [](ArmResult const& arm) { return arm.tuned.empty(); }))
    for (auto& row : rows) row.pop_back();
  return rows;
}

/// Explains the columns of p-values; "" if no arm is compared.
std::string columns_text(AblationResult const& result) {
  if (std::ranges::none_of(result.arms, [](ArmResult const& arm) { return arm.difference.has_value(); })) return "";
  auto const text = fmt::format("p: {}; the verdicts use it", result.test_in_words());
  if (std::ranges::any_of(result.arms, [](ArmResult const& arm) { return arm.difference && arm.difference->e; })) return text;
  return text +
         ". paired t: p of the t test of each arm alone, which assumes normally distributed differences. Equivalence tests, too, are "
         "of each arm alone";
}

/// Sentences, warnings and failures, each on a line that begins so.
std::string said(std::string const& before, std::string const& strong, AblationResult const& result) {
  std::string text;
  for (auto const& line : result.sentences) text += before + line + "\n";
  for (auto const& line : result.warnings) text += before + strong + "warning" + strong + ": " + line + "\n";
  for (auto const& [arm, seed, folder, message, log] : result.failures)
    text += fmt::format("{}{}failed{}: {}, seed {}: {}\n", before, strong, strong, arm, seed, message);
  return text;
}

// ---------------------------------------------------------------- LaTeX

using Signs = std::pair<std::string_view, std::string_view>;

/// Characters that TeX spells differently, beside those that get a backslash.
constexpr std::array<Signs, 18> text_signs{{{" %", "\\,\\%"},
                                            {"\\", "\\textbackslash{}"},
                                            {"[", "{[}"},  // behind \\ it would be its argument, as * would
                                            {"*", "{*}"},
                                            {"~", "\\textasciitilde{}"},
                                            {"^", "\\textasciicircum{}"},
                                            {"<", "$<$"},
                                            {">", "$>$"},
                                            {"|", "$|$"},
                                            {"\"", "''"},
                                            {"±", "$\\pm$"},
                                            {"∞", "$\\infty$"},
                                            {"×", "$\\times$"},
                                            {"−", "$-$"},
                                            {"–", "--"},
                                            {"…", "\\dots{}"},
                                            {"≤", "$\\leq$"},
                                            {"ρ", "$\\rho$"}}};

/// Escapes text for LaTeX. Characters above U+017F, for which plain LaTeX has no glyphs, become their code points: U+4E2D.
std::string tex(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto const sign = std::ranges::find_if(text_signs, [&](Signs const& each) { return text.starts_with(each.first); });
    std::size_t length = sign == text_signs.end() ? 0 : sign->first.size();
    if (std::string_view("&%$#_{}").find(text.front()) != text.npos) result += '\\';
    if (sign != text_signs.end())
      result += sign->second;
    else if (auto const code = static_cast<unsigned>(decode_utf8(text, length).value_or(0xFFFD)); code > 0x17f)
      result += fmt::format("U+{:04X}", code);
    else
      result += code < ' ' ? " " : text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

/// Numbers of a table, "+0.024 ± 0.021", "[1.965, ∞]", "1.23e-08", in TeX's math mode; "" stays "".
std::string tex_numbers(std::string text, bool bold = false) {
  if (text.empty()) return "";
  for (auto const& [sign, word] : {Signs{"±", "\\pm"}, {"∞", "\\infty"}, {"−", "-"}, {"NaN", "\\mathrm{NaN}"}})
    replace_all(text, sign, word);
  for (auto at = text.find('e'); at != text.npos; at = text.find('e', at + 1)) {
    bool const exponent = at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0;
    if (!exponent) continue;
    auto const end = std::min(text.find_first_not_of("+-0123456789", at + 1), text.size());
    int const power = std::stoi(text.substr(at + 1, end - at - 1));
    text.replace(at, end - at, fmt::format(" \\cdot 10^{{{}}}", power));
  }
  return bold ? fmt::format("$\\mathbf{{{}}}$", text) : fmt::format("${}$", text);
}

/// The best mean, as formatted in the table; nothing if none is finite.
std::optional<std::string> best_mean_as_printed(AblationResult const& result) {
  std::vector<double> means;
  for (auto const& arm : result.arms)
    if (arm.has_finite_mean()) means.push_back(arm.estimate->mean);
  if (means.empty()) return std::nullopt;
  return result.format()(result.better == "higher" ? std::ranges::max(means) : std::ranges::min(means));
}

std::string tex_row(AblationResult const& result, ArmResult const& arm, std::optional<std::string> const& best) {
  auto const format = result.format();
  auto seeds = seeds_cell(arm, result.seeds.size());
  seeds.resize(std::min(seeds.find(' '), seeds.size()));  // diverged seeds are listed below the table
  std::string mean = "--", interval, difference, p, verdict;
  if (auto const& estimate = arm.estimate) {
    auto const shown = format(estimate->mean);
    mean = tex_numbers(shown, best == shown);
    auto const cell = interval_cell(format, *estimate);
    interval = cell.starts_with('[') ? tex_numbers(cell) : tex(cell);
  }
  if (auto const& c = arm.difference) {
    difference = tex_numbers(shown_difference(format, c->mean, c->interval));
    p = tex_numbers(fmt::format("{:.2g}", c->p));
    verdict = name(c->verdict);
  } else if (arm.name == result.baseline) {
    verdict = "baseline";
  }
  return fmt::format("    {} & {} & {} & {} & {} & {} & {} \\\\\n", tex(arm.name_with_tuned()), seeds, mean, interval, difference, p,
                     tex(verdict));
}

/// "seeds 1, 2", "seed 4".
std::string seeds_in_words(std::vector<Index> const& seeds) {
  return fmt::format("seed{} {}", seeds.size() == 1 ? "" : "s", fmt::join(seeds, ", "));
}

/// Notes below the table on diverged, failed and missing seeds, one sentence each; seeds with the same note share one.
std::vector<std::string> tex_notes(AblationResult const& result) {
  std::vector<std::string> notes;
  for (auto const& arm : result.arms)
    if (!arm.diverged.empty())
      notes.push_back(fmt::format("{}: diverged with {}, which counts as worse than any number.", arm.name, seeds_in_words(arm.diverged)));
  std::map<std::pair<std::string, std::string>, std::vector<Index>> failed;
  for (auto const& failure : result.failures) failed[{failure.arm, failure.message}].push_back(failure.seed);
  for (auto const& [what, seeds] : failed)
    notes.push_back(fmt::format("{}: {} failed: {}.", what.first, seeds_in_words(seeds), what.second));
  std::map<std::string, std::vector<Index>> missing;
  for (auto const& [arm, seed] : result.missing) missing[arm].push_back(seed);
  for (auto const& [arm, seeds] : missing) notes.push_back(fmt::format("{}: {} missing.", arm, seeds_in_words(seeds)));
  return notes;
}

void write_latex(std::vector<fs::path> const& folders, fs::path const& target) {
  write_atomically(target, latex_table(read_material(folders.front())));
}

Declared<ResultFormat> const latex_format{
    {.name = "latex", .help = "a LaTeX file with the table of the summary (booktabs)", .of = {"ablation"}, .write = write_latex}};

}  // namespace

std::string summary_page(std::string const& folder, AblationResult const& result) {
  std::string text = fmt::format("{}: {}\n\n", folder, table_title(result, result.metric));
  text += table(rows_of(result)) + "\n";
  if (auto const columns = columns_text(result); !columns.empty()) text += "  " + columns + "\n\n";
  return text + said("  ", "", result);
}

std::string summary_markdown(AblationResult const& result) {
  std::string text = fmt::format("# {}\n\n{}.\n\n", result.name, table_title(result, "`" + result.metric + "`"));
  text += markdown_table(rows_of(result));
  if (auto const columns = columns_text(result); !columns.empty()) text += "\n" + columns + "\n";
  if (!result.effects.empty()) text += "\n" + markdown_table(result.effect_rows("difference"));
  if (result.tuning)
    text += fmt::format("\nTuning, mean over {} separate seeds (* selected):\n\n", result.tuning->seeds.size()) +
            markdown_table(result.tuning_rows(" *"));
  return text + "\n" + said("- ", "**", result);
}

std::string latex_table(AblationResult const& result) {
  auto caption = fmt::format("{}: {}", result.name, table_title(result, with_unit(result.metric)));
  if (std::ranges::any_of(result.arms, [](ArmResult const& arm) { return arm.difference.has_value(); }))
    caption += fmt::format(". Differences to {} are paired by seed; p: {}", result.baseline, result.test_in_words());
  auto const best = best_mean_as_printed(result);
  if (best) caption += fmt::format(". The {} mean is bold, whatever its verdict", result.better == "higher" ? "highest" : "lowest");
  std::string text = fmt::format(
      "% {}: heed export --format latex. Needs \\usepackage{{booktabs}}.\n"
      "\\begin{{table}}\n  \\centering\n  \\small\n  \\setlength{{\\tabcolsep}}{{4pt}}\n  \\setlength{{\\belowcaptionskip}}{{4pt}}\n  "
      "\\caption{{{}.}}\n  \\label{{tab:{}}}\n"
      "  \\begin{{tabular}}{{@{{}}lrrlrrl@{{}}}}\n    \\toprule\n"
      "    arm & seeds & mean & 95\\,\\% interval & difference & $p$ & verdict \\\\\n    \\midrule\n",
      file_label(result.name), tex(caption), file_label(result.name));
  for (auto const& arm : result.arms) text += tex_row(result, arm, best);
  text += "    \\bottomrule\n  \\end{tabular}\n";
  auto const notes = tex_notes(result);
  if (!notes.empty()) text += "  \\par\\smallskip\\raggedright\\footnotesize\n";
  for (auto const& note : notes) text += fmt::format("  {}\\par\n", tex(note));
  return text + "\\end{table}\n";
}

}  // namespace heed
