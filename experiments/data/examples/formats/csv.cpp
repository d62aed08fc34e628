#include "experiments/data/examples/files.hpp"

namespace heed {
namespace {

/// The rows of a CSV file, from one to the next.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string const& path) : text_(text), path_(path) {}

  bool done() const { return at_ >= text_.size(); }
  Table::TableRow next() {
    Table::TableRow row{{}, line_};
    do row.fields.push_back(field());
    while (at_ < text_.size() && text_[at_] == ',' && ++at_);
    if (text_.substr(at_, 2) == "\r\n") ++at_;
    ++at_, ++line_;
    return row;
  }

 private:
  bool ends_row() const { return at_ >= text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n"; }
  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
    std::string value;
    for (; !ends_row() && text_[at_] != ','; ++at_) {
      if (text_[at_] == '"')
        refuse_line(path_, line_, "a quote inside a field that does not begin with one; quote the field and double it");
      value += text_[at_];
    }
    return value;
  }
  std::string quoted_field() {
    auto const first_line = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"')
        value += text_[at_];
      else if (text_.substr(at_ + 1, 1) == "\"")
        value += text_[at_++];
      else
        break;
    }
    if (at_ >= text_.size()) refuse_line(path_, first_line, "the quote that begins a field here is never closed");
    ++at_;
    if (!ends_row() && text_[at_] != ',') refuse_line(path_, line_, "text behind the quote that ends a field; a quote inside is doubled");
    return value;
  }

  std::string_view text_;
  std::string const& path_;
  std::size_t at_ = 0, line_ = 1;
};

std::vector<Table::TableRow> csv_rows(std::string_view text, Table& table, bool) {
  std::vector<Table::TableRow> rows;
  for (CsvReader reader(text, table.path); !reader.done();) {
    rows.push_back(reader.next());
    if (rows.back().fields == std::vector<std::string>{""}) table.refuse(rows.back(), "the line is empty");
  }
  return rows;
}

/// RFC 4180.
Declared<ExampleFormat> const csv_format{
    table_format({.order = 2, .name = "csv", .ending = ".csv", .sample = "text,label\n\"good, yes\",1\nbad,0\n"}, csv_rows)};

}  // namespace
}  // namespace heed
