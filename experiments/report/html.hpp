#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "experiments/config/table.hpp"

namespace heed {

/// Escapes a text for HTML content and quoted attributes, isolated (nn/files/utf8.hpp); bytes that are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// A table; the first row and the first cell of each row are headers. "" without rows below the first. On narrow pages a row of more than
/// three cells becomes a list, each with its column's name; one without a first cell has that of the row above as a heading. Long texts
/// are broken. `what`: description for screen readers; `kind`: the class of a cell.
std::string html_table(std::string const& what, TableRows const& rows,
                       std::function<std::string(std::size_t row, std::size_t column)> const& kind = {});

/// A self-contained page, whose policy forbids network access. `more`: further elements of its head; `script`: may be empty.
std::string html_page(std::string const& title, std::string const& body, std::string const& more = "", std::string_view script = "");

/// The page's style sheet and the script of the attention map viewer; CMakeLists.txt makes them from page.css and viewer.js.
extern std::string_view const page_css;
extern std::string_view const viewer_js;

}  // namespace heed
