#pragma once

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "nn/attention/steps.hpp"

namespace heed {

/// `model: {kind: single_attention, …}`.
struct SingleAttentionSettings : Settings {
  Index pairs = 16;
  Index keys = 32;
  Index question = 1;
  std::optional<Index> context;
  std::string inputs = "one_hot";
  std::optional<Index> input_width;
  std::optional<double> input_norm;
  Index heads = 1;
  Index width = 32;
  std::optional<Index> key_width;    ///< d_k; default: width / heads
  std::optional<Index> value_width;  ///< d_v; default: width / heads
  AttentionSettings attention;
  double spread = 1;
  std::string readout = "fixed";
  double sharpness = 8;

  std::vector<Field> fields() override {
    return {
        field(&pairs, "pairs", "key–value pairs at the beginning of a sequence, as data.pairs").in(1, 1 << 20),
        field(&keys, "keys", "number of different keys, as data.keys; the other tokens are values").in(1, 1 << 20),
        field(&question, "question", "tokens of the query after the pairs; as many answers, at the last positions").in(1, 1 << 20),
        field(&context, "context", "tokens of a sequence; default: 2·pairs + question").in(3, 1 << 22),
        field(&inputs, "inputs", "vectors of the keys").one_of({"one_hot", "gaussian"}),
        field(&input_width, "input_width", "width of Gaussian inputs; default: keys").in(1, 65536),
        field(&input_norm, "input_norm", "norm of the vectors of keys and, with readout: linear, of values; default: entries of variance 1")
            .above(0),
        field(&heads, "heads", "number of attention heads").in(1, 1000),
        field(&width, "width", "width of queries, keys and values, over all heads").in(1, 65536),
        field(&key_width, "key_width", "width of a head's queries and keys; default: width / heads").in(1, 65536),
        field(&value_width, "value_width", "width of a head's values; default: width / heads").in(1, 65536),
        field(&attention, "attention", "a variant's name, or a section with score, align and read"),
        field(&spread, "spread", "initial standard deviation of the entries of queries and keys (instead of init)").above(0),
        field(&readout, "readout",
              "fixed: logits are the weights of the values times sharpness; linear: a linear function of projected values")
            .one_of({"fixed", "linear"}),
        field(&sharpness, "sharpness", "factor of the fixed readout").above(0),
    };
  }
  std::optional<std::string> contradiction() override {
    if ((!key_width || (readout == "linear" && !value_width)) && width % heads != 0)
      return fmt::format("heads: {} heads do not divide the width {} (or give key_width and value_width)", heads, width);
    if (readout == "fixed" && heads > 1) return "heads: the fixed readout has one head; several need readout: linear";
    if (readout == "fixed" && question > 1) return "question: the fixed readout gives one answer; several need readout: linear";
    if (inputs == "one_hot" && input_width)
      return "input_width: applies to inputs: gaussian; one-hot inputs have as many entries as there are keys";
    if (context && *context < 2 * pairs + question)
      return fmt::format("context: {} tokens do not hold {} pairs and a question of {}", *context, pairs, question);
    if (auto const key = attention.key_of_many_heads(); !key.empty())
      return "attention." + key + ": applies only to models with residual blocks";
    return std::nullopt;
  }
};

}  // namespace heed
