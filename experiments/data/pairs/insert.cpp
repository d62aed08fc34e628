// A sequence, and the same with a word put in after each that is of the upper half of the vocabulary. Of four words a … d:
//
//     source    c a b d
//     target    c + a b d +
//
// Attention moves as in copy but must pause: the position in the target does not determine the position in the source (Luong et al. 2015,
// local-m against local-p). The inserted word has no source.

#include "experiments/data/pairs/pair_task.hpp"

namespace heed {

namespace {

struct Insert : RandomPairs {
  std::vector<std::string> words() const override {
    auto all = RandomPairs::words();
    all.emplace_back("and");  // behind all digits
    return all;
  }

  Index max_growth() const override { return 2; }

  void answer(PairRow& row) const override {
    for (std::size_t i = 0; i < row.source.size(); ++i) {
      row.say(row.source[i], i);
      if (row.source[i] >= vocabulary - vocabulary / 2) row.say(static_cast<std::int32_t>(vocabulary));
    }
  }
};

Declared<PairKind> const insert_pair{
    {"insert", "insert a word after each word of the upper half of the vocabulary", [] { return std::make_shared<Insert>(); }}};

}  // namespace

}  // namespace heed
