#include "experiments/data/tasks/families.hpp"

namespace heed {

namespace {

/// Multi-query associative recall (Arora et al. 2023, "Zoology"). Four keys a … d, four values 0 … 3, three pairs, two queries:
///
///     inputs    b 2 d 0 a 2 · d · b        pairs, then queries at random positions among blanks
///     targets               · 0 · 2        the value of each key that is asked for; nothing else counts
///
/// The keys of a row differ, and no key is asked for twice before all have been. The task requires attention to a token *after* an equal
/// one: one attention layer of a GPT cannot do it, two can (Olsson et al. 2022). single_attention reads the pairs directly and can.
struct Recall : KeyValueTask {
  std::optional<Index> queries;
  bool repeat = true;

  std::vector<Field> keys() override {
    return extended(
        KeyValueTask::keys(),
        {field(&queries, "queries", "queries of a sequence (default: as many as pairs); model.context ≥ 2·pairs + queries").in(1, 1e6),
         field(&repeat, "repeat", "true: a value may occur in several pairs of a sequence")});
  }
  std::optional<std::string> contradiction() override {
    if (pairs <= values || repeat) return KeyValueTask::contradiction();
    return fmt::format("repeat: false needs a value for each pair, but there are only {} values for {} pairs", values, pairs);
  }
  Index asked() const { return queries.value_or(pairs); }
  TaskSizes sizes() const override {
    return {.tokens = 1 + key_count + values, .shortest_context = 2 * pairs + asked(), .answers = repeat ? values : pairs};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own = draw_pairs(draws, repeat);
    put(row, own);
    auto const context = static_cast<Index>(row.inputs.size());
    auto const free = different_numbers(draws.child("places"), asked(), context - 2 * pairs);
    std::vector<Index> order;
    for (std::size_t i = 0; i < free.size(); ++i) {
      auto const round = i / own.size();
      if (i % own.size() == 0) order = different_numbers(draws.child("queries").child(round), pairs, pairs);
      auto const position = static_cast<std::size_t>(2 * pairs + free[i]);
      auto const& [key, value] = at(own, order[i % own.size()]);
      row.inputs[position] = key;
      row.targets[position] = value;
    }
  }
};

Declared<DataKind> const recall_data{
    task_kind<Recall>("recall", "multi-query associative recall: key–value pairs, then keys: predict their values")};

/// Associative recall among noise (Poli et al. 2024, MAD): pairs of key and value, between which tokens of another vocabulary stand. The
/// last key is asked for:
///
///     inputs    b 2 ~ d 0 ~ ~ a 1 d
///     targets   · · · · · · · · · 0
///
/// Every key is known by then. Tokens: 1 … keys, the values, then the noise. `noise`: share of the positions between pairs.
struct NoisyRecall : KeyValueTask {
  Index noises = 16;
  double noise = 0.2;

  std::vector<Field> keys() override {
    return extended(KeyValueTask::keys(),
                    {field(&noises, "noises", "number of different tokens of noise").in(1, 1e6),
                     field(&noise, "noise", "probability of noise before each pair, again and again while there is room").in(0, 0.99)});
  }
  TaskSizes sizes() const override {
    return {.tokens = 1 + key_count + values + noises, .shortest_context = 2 * pairs + 1, .answers = values};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own = draw_pairs(draws);
    Index room = static_cast<Index>(row.inputs.size()) - sizes().shortest_context;
    std::size_t at = 0, draw = 0;
    for (auto const& [key, value] : own) {
      while (room > 0 && draws.child("noise").uniform(draw++) < noise) {
        row.inputs[at] = 1 + key_count + values + draw_number(draws.child("tokens"), at, noises);
        ++at, --room;
      }
      row.inputs[at++] = key;
      row.inputs[at++] = value;
    }
    auto const& [key, value] = own[draws.child("asked").below(0, own.size())];
    row.inputs[at] = key;
    row.targets[at] = value;
  }
};

Declared<DataKind> const noisy_recall_data{
    task_kind<NoisyRecall>("noisy_recall", "key-value pairs among noise: the value of the last key")};

/// Ordered lookup of two keys in one question. Four keys a … d, four values 0 … 3, three pairs:
///
///     inputs    b 2 d 0 a 3 d b            pairs, then two different keys
///     targets               0 2            the value of the first, and that of the second
///
/// Who answers both at one position must attend to two pairs at once: a single head attends to their average, two heads at one each. That
/// is what multi-head attention is for (Vaswani et al. 2017, section 3.2.2), and what single_attention with `question: 2` measures. A GPT
/// answers each at the key itself, as in recall, or with a delay of 1 at the position after it,
///
///     inputs    b 2 d 0 a 3 d b ·
///     targets               · 0 2
///
/// where it first has to look back for the key: much harder to learn.
struct Lookup : KeyValueTask {
  Index questions = 1, delay = 0;

  std::vector<Field> keys() override {
    auto all = extended(KeyValueTask::keys(), {field(&questions, "questions",
                                                     "questions of two keys each, one after the other; model.context ≥ 2·pairs + "
                                                     "(2 + delay)·questions")
                                                   .in(1, 1e6),
                                               field(&delay, "delay", "positions from a key to its answer").in(0, 1e6)});
    all.front().min = 2;  // pairs: a question asks for two
    return all;
  }
  TaskSizes sizes() const override {
    return {.tokens = 1 + key_count + values, .shortest_context = 2 * pairs + (2 + delay) * questions, .answers = values};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own = draw_pairs(draws);
    put(row, own);
    auto const later = static_cast<std::size_t>(delay);
    for (std::size_t question = 0; question < static_cast<std::size_t>(questions); ++question) {
      auto const asked = different_numbers(draws.child("query").child(question), 2, pairs);
      for (std::size_t i = 0; i < asked.size(); ++i) {
        auto const position = 2 * own.size() + (2 + later) * question + i;
        row.inputs[position] = at(own, asked[i]).key;
        row.targets[position + later] = at(own, asked[i]).value;
      }
    }
  }
};

Declared<DataKind> const lookup_data{
    task_kind<Lookup>("lookup", "key–value pairs, then a question of two keys: answer with their values, in this order")};

/// Associative recall of keys and values that are several tokens long (Poli et al. 2024, MAD, "fuzzy"). Two pairs, of up to two tokens:
///
///     inputs    a b , 1 ; c , 2 1 ; c ,
///     targets   · · · · · · · · · · · 2     then the rest of the value: 2 1
///
/// An answer's tokens are predicted one by one, the earlier ones in the inputs. Tokens: 1 the comma, 2 the semicolon, keys', values'.
struct FuzzyRecall : Task {
  Index pairs = 4, longest = 3, key_count = 16, values = 16;

  std::vector<Field> keys() override {
    return {field(&pairs, "pairs", "key–value pairs of a sequence; model.context ≥ (pairs + 1)·2·(longest + 1)").in(1, 1e4),
            field(&longest, "longest", "tokens of the longest key and value").in(1, 100),
            field(&key_count, "keys", "number of different tokens of keys").in(2, 1e6),
            field(&values, "values", "number of different tokens of values").in(2, 1e6)};
  }
  std::optional<std::string> contradiction() override {
    if (pairs > key_count)
      return fmt::format("pairs: the first tokens of the keys differ, but there are only {} for {} pairs", key_count, pairs);
    return std::nullopt;
  }
  TaskSizes sizes() const override {
    return {.tokens = 3 + key_count + values, .shortest_context = (pairs + 1) * 2 * (longest + 1), .answers = values};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const firsts = different_numbers(draws.child("keys"), pairs, key_count);
    std::vector<std::vector<Index>> keys_of, values_of;
    std::size_t at = 0;
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      Stream const own = draws.child(i);
      keys_of.push_back({3 + firsts[i]});
      for (Index more = draw_number(own.child("key length"), 0, longest); more > 0; --more)
        keys_of.back().push_back(3 + draw_number(own.child("key"), static_cast<std::size_t>(more), key_count));
      values_of.emplace_back();
      for (Index more = draw_number(own.child("value length"), 0, longest); more >= 0; --more)
        values_of.back().push_back(3 + key_count + draw_number(own.child("value"), static_cast<std::size_t>(more), values));
      put(row, at, keys_of.back(), 1), put(row, at, values_of.back(), 2);
    }
    auto const asked = draws.child("asked").below(0, firsts.size());
    put(row, at, keys_of[asked], 1);
    for (Index const token : values_of[asked]) {
      row.targets[at - 1] = token;
      if (at < row.inputs.size()) row.inputs[at++] = token;
    }
  }

 private:
  static void put(TaskRow const& row, std::size_t& at, std::vector<Index> const& tokens, Index end) {
    for (Index const token : tokens) row.inputs[at++] = token;
    row.inputs[at++] = end;
  }
};

Declared<DataKind> const fuzzy_recall_data{
    task_kind<FuzzyRecall>("fuzzy_recall", "key-value pairs of several tokens: the value of the last key")};

}  // namespace

}  // namespace heed
