#include "experiments/report/html.hpp"

#include <fmt/format.h>

#include "experiments/text/utf8.hpp"

namespace heed {

std::string escape(std::string_view text) {
  std::string html;
  for (char const c : valid_utf8(text)) {
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

std::string html_table(std::string const& what, std::vector<std::string> const& head, std::string const& body) {
  std::string html =
      fmt::format("<div class=\"scroll\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\"><table>\n<thead><tr>", escape(what));
  for (auto const& cell : head) html += fmt::format("<th scope=\"col\">{}</th>", escape(cell));
  return html + "</tr></thead>\n<tbody>\n" + body + "</tbody></table></div>\n";
}

}  // namespace heed
