#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heed {

/// A text with the names of columns in braces, "{premise} Therefore: {hypothesis}"; "{{" and "}}" stand for braces.
class TextTemplate {
 public:
  /// Throws Error that begins with `key` for a brace that is never closed or opened, and for a name that is no column of `origin`.
  TextTemplate(std::string const& written, std::string const& key, std::vector<std::string> const& columns, std::string const& origin);

  /// The text with a row's fields.
  std::string of(std::vector<std::string> const& fields) const;

 private:
  /// Text, and the column that follows it.
  struct TemplatePiece {
    std::string text;
    std::size_t column;
  };
  std::vector<TemplatePiece> pieces_;
  std::string end_;
};

}  // namespace heed
