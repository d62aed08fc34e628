#include "nn/pass.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "autograd/attention/row_statistics.hpp"
#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"
#include "nn/batch.hpp"

namespace heed {

namespace {

/// Some rows of each sequence of x [B, n, width].
struct KeptRows {
  Tensor const& x;
  Index first, count;
};

/// Writes them, of the sequences with these numbers, into `room` [R, capacity, width], from row `first` of each on.
void write_rows(KeptRows const& rows, std::vector<Index> const& sequences, Tensor const& room, Index first) {
  auto const from = bytes_in(rows.x);
  auto const to = writable_bytes_in(room);
  Index const width = rows.x.size(2) * static_cast<Index>(bytes_of(rows.x.dtype())), each = rows.count * width;
  parallel_for(std::ssize(sequences), 0.2 * static_cast<double>(rows.count * rows.x.size(2)), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      Index const start = (at(sequences, r) * rows.x.size(1) + rows.first) * width;
      std::ranges::copy(from.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(each)),
                        to.begin() + (r * room.size(1) + first) * width);
    }
  });
}

std::vector<Index> all_of(Index count) {
  std::vector<Index> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), Index{0});
  return numbers;
}

/// Steps behind each other on the last axis but one, shorter last axes filled with zeros; undefined if there are none.
Tensor joined(std::vector<Tensor> const& steps) {
  if (steps.size() < 2) return steps.empty() ? Tensor() : steps.front();
  Index longest = 0;
  for (Tensor const& step : steps) longest = std::max(longest, step.size(-1));
  auto const as_long = [&](Tensor const& step) { return step.size(-1) < longest ? pad(step, -1, 0, longest - step.size(-1)) : step; };
  return concatenate(mapped(steps, as_long), -2);
}

}  // namespace

Tensor GrowingRows::append(Tensor const& fresh, Index sees) {
  bool const fits =
      fresh.rank() == 3 && !fresh.requires_grad() &&
      (!room_.defined() || (fresh.size(0) == std::ssize(going_) && fresh.size(2) == room_.size(2) && fresh.dtype() == room_.dtype()));
  if (!fits)
    throw Error(fmt::format("cache: cannot keep rows of {}{}; it reads as many sequences as before, of one width, outside the graph",
                            to_string(fresh.shape()), fresh.requires_grad() ? " with a gradient" : ""));
  Index const sequences = fresh.size(0), n = fresh.size(1), width = fresh.size(2);
  Index const drops = sees > 0 ? std::max<Index>(count_ + 1 - sees, 0) : 0;
  first_ += drops, count_ -= drops, dropped_ += drops;
  Index const all = count_ + n;
  // Dropped rows are left behind when they are more than those to copy.
  if (!room_.defined() || sequences > 1 || room_.size(0) > 1 || first_ + all > room_.size(1) || first_ > all) {
    // Attention reads the rows of several sequences as one contiguous array, which leaves no spare room between sequences.
    Tensor larger({sequences, (sequences > 1 ? 1 : 2) * all, width}, fresh.dtype());
    if (count_ > 0) write_rows({room_, first_, count_}, going_, larger, 0);
    room_ = larger;
    first_ = 0;
    going_ = all_of(sequences);
  }
  write_rows({fresh, 0, n}, going_, room_, first_ + count_);
  count_ = all;
  if (sequences > 1) return room_;
  return room_.viewed({room_.size(1), width}).rows(first_, count_).viewed({1, count_, width});
}

void GrowingRows::keep(std::span<Index const> sequences) {
  if (!room_.defined()) return;
  going_ = take(going_, sequences);
}

Projected Projected::chosen(std::span<Index const> sequences) const {
  return {take(key, sequences), take(value, sequences), forget.defined() ? take(forget, sequences) : Tensor()};
}

void KeyValueCache::keep(std::span<Index const> sequences) {
  for (Layer& layer : layers) {
    layer.key.keep(sequences);
    layer.value.keep(sequences);
    layer.forget.keep(sequences);
    for (Tensor* const kept : {&layer.query_tail, &layer.key_tail, &layer.value_tail, &layer.state, &layer.normaliser})
      if (kept->defined()) *kept = take(*kept, sequences);
  }
}

void KeyValueCache::keep_memory(std::span<Index const> sequences) {
  for (Layer& layer : layers)
    if (layer.memory) layer.memory = layer.memory->chosen(sequences);
}

void AttentionRecorder::add(std::string const& layer, AttentionStep const& step) {
  if (next_ != nullptr) next_->add(layer, step);
  if (options_.only_layers && !options_.only_layers(step.of)) return;
  if (options_.instead) return options_.instead(layer, step);
  bool const later = step.visibility.offset > 0;
  auto known = layers_.end();
  if (later || options_.join_passes) known = std::ranges::find(layers_, layer, [](Steps const& steps) { return steps.record.layer; });
  if (known == layers_.end()) known = layers_.insert(known, Steps{{layer, step.of, step.visibility}});
  AttentionRecord& record = known->record;
  if (step.weights.defined()) record.heads = step.weights.size(1);
  record.log_decay = step.log_decay, record.state = step.state;
  if (options_.weights) known->weights.push_back(options_.mean_over_heads ? mean(step.weights, {1}) : step.weights);
  if (options_.scores && step.scores.defined()) record.steps.push_back(step.scores);
  if (options_.inputs) known->queries.push_back(step.query), record.key = step.key;
  if (!options_.rows) return;
  if (!later || known->rows.empty()) known->rows.emplace_back();
  if (!options_.weights) return known->rows.back().push_back(step.rows);
  Tensor const visible = step.visibility.mask(step.weights.size(2), step.weights.size(3), step.weights.dtype());
  Tensor const weights = step.scores.defined() ? step.weights : abs(step.weights);  // of linear attention, which has signs
  known->rows.back().push_back(attention_rows(step.scores, weights, visible, step.visibility.offset));
}

std::vector<AttentionRecord> AttentionRecorder::records() const {
  std::vector<AttentionRecord> all;
  for (Steps const& steps : layers_) {
    AttentionRecord& record = all.emplace_back(steps.record);
    record.scores = joined(record.steps);
    record.weights = joined(steps.weights);
    record.query = joined(steps.queries);
    for (auto const& of_pass : steps.rows) record.rows.push_back(joined(of_pass));
  }
  return all;
}

std::uint64_t Pass::sequence(Index row) const {
  auto const index = static_cast<std::size_t>(row);
  if (decoding.sequences.empty()) return index;
  if (index >= decoding.sequences.size())
    throw Error(fmt::format("pass: there are numbers of {} sequences, but none of row {}", decoding.sequences.size(), row));
  return decoding.sequences[index];
}

}  // namespace heed
