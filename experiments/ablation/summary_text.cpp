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
#include "experiments/config/table.hpp"
#include "experiments/exchange/formats.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/material.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// "validation.loss (last, lower is better), mean and 95 % interval over 6 seeds". `metric`: its name as it is to be shown.
std::string table_title(AblationResult const& result, std::string const& metric) {
  return fmt::format("{} ({}, {} is better), mean and 95 % interval over {}", metric, result.at, result.better,
                     plural(result.seeds.size(), "seed"));
}

/// Explains the columns of p-values; "" if no arm is compared.
std::string columns_text(AblationResult const& result) {
  if (std::ranges::none_of(result.arms, [](ArmResult const& arm) { return arm.difference.has_value(); })) return "";
  auto const text = fmt::format("p, which the verdicts use: {}", result.test_in_words());
  if (result.by_evidence()) return text;
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

/// The row of an arm, from its cells in the summary's table.
std::string tex_row(ArmResult const& arm, std::vector<std::string> cells, std::optional<std::string> const& best) {
  if (!arm.difference) std::swap(cells[3], cells[7]);         // "baseline"
  auto const seeds = cells[8].substr(0, cells[8].find(' '));  // diverged ones are listed below the table
  auto const mean = arm.estimate ? tex_numbers(cells[1], best == cells[1]) : "--";
  auto const interval = cells[2].starts_with('[') ? tex_numbers(cells[2]) : tex(cells[2]);
  return fmt::format("    {} & {} & {} & {} & {} & {} & {} \\\\\n", tex(arm.name_with_tuned()), seeds, mean, interval,
                     tex_numbers(cells[3]), tex_numbers(cells[4]), tex(cells[7]));
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
  text += table(without_empty_columns(result.arm_rows())) + "\n";
  if (auto const columns = columns_text(result); !columns.empty()) text += "  " + columns + "\n\n";
  return text + said("  ", "", result);
}

std::string summary_markdown(AblationResult const& result) {
  std::string text = fmt::format("# {}\n\n{}.\n\n", result.name, table_title(result, "`" + result.metric + "`"));
  text += markdown_table(without_empty_columns(result.arm_rows()));
  if (auto const columns = columns_text(result); !columns.empty()) text += "\n" + columns + "\n";
  if (!result.effects.empty()) text += "\n" + markdown_table(result.effect_rows("difference"));
  if (result.tuning)
    text += fmt::format("\nTuning, mean over {} separate seeds (* selected):\n\n", result.tuning->seeds.size()) +
            markdown_table(result.tuning_rows(" *"));
  return text + "\n" + said("- ", "**", result);
}

std::string latex_table(AblationResult const& result) {
  auto caption = fmt::format("{}: {}", result.name, table_title(result, with_unit(result.metric, result.unit)));
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
  auto const rows = result.arm_rows();
  for (std::size_t i = 0; i < result.arms.size(); ++i) text += tex_row(result.arms[i], rows[i + 1], best);
  text += "    \\bottomrule\n  \\end{tabular}\n";
  auto const notes = tex_notes(result);
  if (!notes.empty()) text += "  \\par\\smallskip\\raggedright\\footnotesize\n";
  for (auto const& note : notes) text += fmt::format("  {}\\par\n", tex(note));
  return text + "\\end{table}\n";
}

}  // namespace heed
