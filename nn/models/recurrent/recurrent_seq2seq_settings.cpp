#include <algorithm>

#include <fmt/format.h>

#include "nn/models/recurrent/recurrent_seq2seq.hpp"

namespace heed {

double RecurrentSeq2seqSettings::scheduled_sample(std::int64_t step) const {
  if (scheduled_sampling_steps == 0) return scheduled_sampling;
  return scheduled_sampling * std::min(1.0, static_cast<double>(step) / static_cast<double>(scheduled_sampling_steps));
}

std::vector<Field> RecurrentSeq2seqSettings::fields() {
  return {
      {.name = "cell", .target = &cell, .help = "recurrent cell of encoder and decoder", .words = Registry<CellKind>::names()},
      {.name = "layers", .target = &layers, .help = "layers of the encoder, and as many of the decoder", .least = 1, .greatest = 100},
      {.name = "width", .target = &width, .help = "width of a cell's state", .least = 1, .greatest = 65536},
      {.name = "embedding", .target = &embedding, .help = "width of the word embeddings", .least = 1, .greatest = 65536},
      {.name = "context",
       .target = &context,
       .help = "longest source and target in tokens; longer ones also work, except with the score location",
       .least = 1,
       .greatest = 1 << 20},
      {.name = "bidirectional", .target = &bidirectional, .help = "bidirectional encoder"},
      {.name = "reverse_source", .target = &reverse_source, .help = "reverse the source (Sutskever et al. 2014)"},
      {.name = "attention", .target = &attention, .help = "none, or a section with style, score, align and read"},
      {.name = "input_feeding",
       .target = &input_feeding,
       .help = "the decoder's input includes the last attentional vector (Luong et al. 2015)"},
      {.name = "dropout",
       .target = &dropout,
       .help = "dropout on embeddings, between layers and on the input of the output layer",
       .least = 0,
       .greatest = 0.999},
      {.name = "norm",
       .target = &norm,
       .help = "layer: layer norm of the gates' pre-activations (Ba et al. 2016)",
       .words = {"none", "layer"}},
      {.name = "scheduled_sampling",
       .target = &scheduled_sampling,
       .help = "probability that an input of the decoder in training is sampled from the model (Bengio et al. 2015)",
       .least = 0,
       .greatest = 1},
      {.name = "scheduled_sampling_steps",
       .target = &scheduled_sampling_steps,
       .help = "steps over which this probability grows from 0",
       .least = 0,
       .greatest = 1e12},
  };
}

std::optional<std::string> RecurrentSeq2seqSettings::contradiction() {
  if (bidirectional && reverse_source) return "reverse_source: a bidirectional encoder reads both ways already";
  if (input_feeding && bahdanau()) return "input_feeding: in Bahdanau's style the context enters the cell already";
  return std::nullopt;
}

}  // namespace heed
