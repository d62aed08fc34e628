#include <algorithm>

#include <fmt/format.h>

#include "nn/models/recurrent/recurrent_seq2seq.hpp"

namespace heed {

double RecurrentSeq2seqSettings::scheduled_sample(Index step) const {
  if (scheduled_sampling_steps == 0) return scheduled_sampling;
  return scheduled_sampling * std::min(1.0, static_cast<double>(step) / static_cast<double>(scheduled_sampling_steps));
}

std::vector<Field> RecurrentSeq2seqSettings::fields() {
  return {
      field(&cell, "cell", "recurrent cell of encoder and decoder").one_of(Registry<CellKind>::names()),
      field(&layers, "layers", "layers of the encoder, and as many of the decoder").in(1, 100),
      field(&width, "width", "width of a cell's state").in(1, 65536),
      field(&embedding, "embedding", "width of the word embeddings").in(1, 65536),
      field(&context, "context", "longest source and target in tokens; longer ones also work, except with the score location")
          .in(1, 1 << 20),
      field(&bidirectional, "bidirectional", "bidirectional encoder"),
      field(&reverse_source, "reverse_source", "reverse the source (Sutskever et al. 2014)"),
      field(&attention, "attention", "none, or a section with style, score, align and read"),
      field(&input_feeding, "input_feeding", "the decoder's input includes the last attentional vector (Luong et al. 2015)"),
      field(&dropout, "dropout", "dropout on embeddings, between layers and on the input of the output layer").in(0, 0.999),
      field(&norm, "norm", "layer: layer norm of the gates' pre-activations (Ba et al. 2016)").one_of({"none", "layer"}),
      field(&scheduled_sampling, "scheduled_sampling",
            "probability that an input of the decoder in training is sampled from the model (Bengio et al. 2015)")
          .in(0, 1),
      field(&scheduled_sampling_steps, "scheduled_sampling_steps", "steps over which this probability grows from 0").in(0, 1e12),
  };
}

std::optional<std::string> RecurrentSeq2seqSettings::contradiction() {
  if (bidirectional && reverse_source) return "reverse_source: a bidirectional encoder reads both ways already";
  if (input_feeding && bahdanau()) return "input_feeding: in Bahdanau's style the context enters the cell already";
  return std::nullopt;
}

}  // namespace heed
