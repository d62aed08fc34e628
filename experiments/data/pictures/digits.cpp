// Handwritten digits of 8×8 pixels in rows, and what they are in reading order (optical recognition of handwritten digits, Alpaydın &
// Kaynak 1998): lines of 64 levels 0 … 16 and the digit. Digits that are trained on are never held out: they are of other files.
//
//     .  7  .  2
//     0  .  .  .        seven two zero

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/pictures/picture_task.hpp"
#include "experiments/data/tasks/task.hpp"
#include "nn/files/number.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

constexpr Index pixels_across = 8;
constexpr std::array<char const*, 10> digit_names{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};

struct Digit {
  std::array<Index, pixels_across * pixels_across> pixels;
  std::size_t value;

  std::strong_ordering operator<=>(Digit const&) const = default;
};

/// Throws FileError with the line of what is no digit.
std::vector<Digit> read_digits(std::filesystem::path const& path) {
  std::string const text = read_text(path);
  std::vector<Digit> digits;
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    auto row = next_line(text, begin);
    ++line;
    if (row.empty() || row.starts_with('#')) continue;
    Digit digit{};
    for (std::size_t i = 0; i <= digit.pixels.size(); ++i) {
      bool const last = i == digit.pixels.size();
      auto const end = last ? row.size() : row.find(',');
      auto const value = end == row.npos ? std::nullopt : parsed_number<Index>(row.substr(0, end));
      if (!value || *value < 0 || *value > (last ? 9 : 16))
        refuse_line(path.string(), line, "is not 64 numbers 0 to 16 and a digit, with commas between");
      if (last)
        digit.value = static_cast<std::size_t>(*value);
      else
        digit.pixels[i] = *value, row.remove_prefix(end + 1);
    }
    digits.push_back(digit);
  }
  if (digits.empty()) throw FileError(path.string() + ": holds no digits");
  return digits;
}

struct DigitPictures : PictureTask {
  std::string train = "optdigits/optdigits.tra", held_out = "optdigits/optdigits.hol", test = "optdigits/optdigits.tes";

  DigitPictures() { rows = 2; }

  std::vector<Field> keys() override {
    return {field(&train, "train", "file of the digits of training pictures"),
            field(&held_out, "held_out", "file of the digits of validation pictures"),
            field(&test, "test", "file of the digits of test pictures")};
  }

  /// Throws FileError if more than half of a part's digits are trained on. (A few of many may look alike.)
  ReadFiles open(DataContext const& context) override {
    ReadFiles read;
    auto const read_part = [&](std::string const& name, std::string const& file) {
      auto const path = locate(file, context);
      auto digits = read_digits(path);
      read[name] = {path.string(), sha256_of_file(path)};
      return digits;
    };
    training_ = read_part("training", train);
    held_out_ = read_part(context.held_out, context.held_out == "test" ? test : held_out);
    std::set<Digit> const trained(training_.begin(), training_.end());
    auto const count = std::ranges::count_if(held_out_, [&](Digit const& digit) { return trained.contains(digit); });
    if (2 * count > std::ssize(held_out_))
      throw FileError(fmt::format("{}: {} of its {} digits are in {} too, the file that is trained on; held-out digits must be others",
                                  read[context.held_out].file, count, held_out_.size(), read["training"].file));
    return read;
  }

  std::vector<std::string> words() const override { return {digit_names.begin(), digit_names.end()}; }
  PictureSizes sizes() const override { return {.channels = 1, .levels = 17, .side = pixels_across, .words_each = 1}; }

  std::vector<std::string> put(PictureCell const& square, Index, Index, Stream const& draws, bool of_held_out) const override {
    auto const& from = of_held_out ? held_out_ : training_;
    Digit const& digit = at(from, draw_number(draws, 0, std::ssize(from)));
    for (Index i = 0; i < std::ssize(digit.pixels); ++i) square.at(0, i / pixels_across, i % pixels_across) = at(digit.pixels, i);
    return {digit_names[digit.value]};
  }

 private:
  std::vector<Digit> training_, held_out_;
};

Declared<DataKind> const digits_data{picture_kind<DigitPictures>(
    "digits", "pictures of handwritten digits in rows, and captions in reading order", DataParts::validation_and_test)};

}  // namespace

}  // namespace heed
