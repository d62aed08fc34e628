#include "experiments/report/html.hpp"

#include <fmt/format.h>

#include "nn/files/utf8.hpp"

namespace heed {

std::string escape(std::string_view text) {
  std::string html;
  for (char const c : isolated(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string html_row(std::vector<std::string> const& cells) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", escape(cells[i])) : fmt::format("<td>{}</td>", escape(cells[i]));
  return html + "</tr>\n";
}

namespace {

/// Rows whose cells say the name of their column, which a narrow screen shows beside each.
std::string labelled(std::string const& body, std::vector<std::string> const& head) {
  std::string html;
  std::size_t column = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    auto const tag = std::string_view(body).substr(at, 3);
    if (tag == "<tr") column = 0;
    if (tag != "<td" && tag != "<th") {
      html += body[at];
      continue;
    }
    html += fmt::format("{} data-column=\"{}\"", tag, column < head.size() ? escape(head[column]) : "");
    ++column;
    at += tag.size() - 1;
  }
  return html;
}

}  // namespace

std::string html_table(std::string const& what, std::vector<std::string> const& head, std::string const& body) {
  std::string html =
      fmt::format("<div class=\"scroll\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\"><table{1}>\n<thead><tr>", escape(what),
                  head.size() > 8   ? " class=\"wide\""
                  : head.size() > 3 ? " class=\"many\""
                                    : "");
  for (auto const& cell : head) html += fmt::format("<th scope=\"col\">{}</th>", escape(cell));
  return html + "</tr></thead>\n<tbody>\n" + labelled(body, head) + "</tbody></table></div>\n";
}

}  // namespace heed
