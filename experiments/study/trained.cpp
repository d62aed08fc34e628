#include "experiments/study/trained.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

/// Rows of head h of sequence b in x [B, T, H·d], as [T, d].
std::vector<float> head_of(Tensor const& x, Index b, Index h, Index width, Index first) {
  std::vector<float> rows;
  for (Index t = first; t < x.size(1); ++t) {
    for (Index c = 0; c < width; ++c) rows.push_back(static_cast<float>(x.at((b * x.size(1) + t) * x.size(2) + h * width + c)));
  }
  return rows;
}

/// Queries of a sequence: the last ⌊n/16⌋·16.
Index queries_of(Index length) { return length / 16 * 16; }

}  // namespace

BlockShape TrainedHead::shape(Index n) const {
  BlockShape result{width, n, queries_of(length), length};
  if (causal) result.place = length - result.queries;
  return result;
}

std::vector<TrainedHead> trained_heads(std::string const& run, Index sequences, StudyContext const& context, ReadFiles& read) {
  auto const folder = find_run(run, context.folders);
  TrainedModel const trained = open_run(folder, "last");
  auto const weights = fs::is_directory(folder) ? folder / "checkpoint.safetensors" : folder;
  read["run"] = {weights.string(), sha256_of_file(weights)};
  auto const data = data_of(trained, context.folders, "validation", context.quiet);
  NoGrad const no_grad;
  std::vector<TrainedHead> heads;
  Index const rows = std::min<Index>(sequences, 16), length = trained.model->context();
  Index taken = 0;
  for (Index i = 0; i < data->validation_batches(rows, length) && taken < sequences; ++i) {
    AttentionRecorder recorder({.inputs = true});
    Observer const observer{.attention = &recorder};
    Pass pass;
    pass.watching.observer = &observer;
    Batch const batch = data->validation(i, rows, length);
    trained.model->run(batch, pass);
    std::size_t next = 0, layer = 0;
    for (AttentionRecord const& record : recorder.records()) {
      Index const width = record.query.size(2) / record.heads, size = record.query.size(1);
      bool const self = size == record.key.size(1) && size >= 16;
      for (Index h = 0; h < record.heads && self; ++h, ++next) {
        if (next == heads.size()) heads.push_back({fmt::format("layer{}.head{}", layer, h), width, size, record.visibility.causal, {}});
        for (Index b = 0; b < record.query.size(0); ++b)
          heads[next].sequences.push_back(
              {head_of(record.query, b, h, width, size - queries_of(size)), head_of(record.key, b, h, width, 0), {}});
      }
      ++layer;
    }
    taken += batch.rows();
  }
  if (heads.empty()) throw FileError(fmt::format("{}: no self-attention over 16 tokens or more in its validation data", folder.string()));
  if (taken < 2) throw FileError(fmt::format("{}: its validation data are a single sequence", folder.string()));
  return heads;
}

ProductBlock centred_products(ProductBlock const& sequence, BlockShape const& shape) {
  ProductBlock block = sequence;
  multiply(block, shape);
  double total = 0, count = 0;
  for (Index j = 0; j < shape.keys; ++j) {
    for (Index i = shape.place ? std::max<Index>(0, j - *shape.place) : 0; i < shape.queries; ++i, ++count)
      total += static_cast<double>(at(block.products, j * shape.queries + i));
  }
  auto const mean = static_cast<float>(total / count);
  for (float& z : block.products) z -= mean;
  return block;
}

}  // namespace heed
