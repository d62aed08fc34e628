#pragma once

#include "nn/settings.hpp"
#include "tests/test.hpp"

/// Settings of every kind of field, in the manner of a real run's.
namespace sample {

using namespace heed;

struct Attention : Settings {
  std::string score = "scaled_dot", align = "softmax";
  double temperature = 1;
  std::vector<Field> fields() override {
    return {{.name = "score", .target = &score, .help = "score function", .words = {"dot", "scaled_dot", "general"}},
            {.name = "align", .target = &align, .help = "alignment function", .words = {"softmax", "local_p"}},
            {.name = "temperature", .target = &temperature, .help = "divides the scores", .least = 0, .open = true}};
  }
  bool from_word(std::string_view word) override {
    if (word == "local-p")
      score = "general", align = "local_p";
    else if (word == "dot")
      score = "dot";
    else if (word == "frozen")
      temperature = 0;
    else
      return false;
    return true;
  }
  std::vector<std::string> short_words() override { return {"dot", "local-p"}; }
};

struct Gpt : Settings {
  std::int64_t layers = 4, heads = 4, width = 128;
  std::string position = "learned";
  Attention attention;
  double dropout = 0;
  bool bias = true;
  std::optional<std::int64_t> key_width;
  std::vector<Field> fields() override {
    return {{.name = "layers", .target = &layers, .help = "blocks", .least = 1, .greatest = 1000},
            {.name = "heads", .target = &heads, .help = "attention heads", .least = 1},
            {.name = "width", .target = &width, .help = "features of a token", .least = 1},
            {.name = "position", .target = &position, .help = "position encoding", .words = {"none", "learned", "sinusoidal"}},
            {.name = "attention", .target = &attention, .help = "score, align"},
            {.name = "dropout", .target = &dropout, .help = "probability", .least = 0, .greatest = 0.9},
            {.name = "bias", .target = &bias, .help = "biases of Linear layers"},
            {.name = "key_width", .target = &key_width, .help = "features of a key", .least = 1}};
  }
  std::optional<std::string> contradiction() override {
    if (width % heads != 0) return "width: must be divisible by heads (" + std::to_string(width) + " by " + std::to_string(heads) + ")";
    return std::nullopt;
  }
};

struct Recurrent : Settings {
  std::string cell = "lstm";
  std::int64_t width = 64;
  std::vector<Field> fields() override {
    return {{.name = "cell", .target = &cell, .help = "recurrent cell", .words = {"lstm", "gru"}},
            {.name = "width", .target = &width, .help = "features of a state", .least = 1}};
  }
};

struct Sgd : Settings {
  double lr = 0.1, momentum = 0;
  std::vector<Field> fields() override {
    return {{.name = "lr", .target = &lr, .help = "learning rate", .least = 0, .open = true},
            {.name = "momentum", .target = &momentum, .help = "momentum", .least = 0, .greatest = 1}};
  }
};

struct Adamw : Settings {
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  std::vector<Field> fields() override {
    return {{.name = "lr", .target = &lr, .help = "learning rate", .least = 0, .open = true},
            {.name = "betas", .target = &betas, .help = "decay of the moments", .least = 0, .greatest = 1}};
  }
};

struct Cosine : Settings {
  std::int64_t warmup = 100;
  double min_lr = 1e-4;
  std::vector<Field> fields() override {
    return {{.name = "warmup", .target = &warmup, .help = "steps", .least = 0},
            {.name = "min_lr", .target = &min_lr, .help = "final rate"}};
  }
};

template <class T>
Choice::Option option(std::string name, std::string help) {
  return {std::move(name), std::move(help), [] { return std::make_shared<T>(); }};
}

struct Train : Settings {
  std::int64_t steps = 2000;
  Choice optimizer{{option<Adamw>("adamw", "AdamW"), option<Sgd>("sgd", "momentum")}, "adamw", nullptr};
  Choice schedule{{option<Cosine>("cosine", "half a cosine")}, "", nullptr};
  std::optional<double> clip = 1;
  std::vector<Field> fields() override {
    return {{.name = "steps", .target = &steps, .help = "updates", .least = 1},
            {.name = "optimizer", .target = &optimizer, .help = "update rule"},
            {.name = "schedule", .target = &schedule, .help = "learning rate over time"},
            {.name = "clip", .target = &clip, .help = "largest gradient norm", .least = 0, .open = true}};
  }
};

struct Text : Settings {
  std::string path, tokenizer = "char";
  std::vector<Field> fields() override {
    return {{.name = "path", .target = &path, .help = "a text file", .required = true},
            {.name = "tokenizer", .target = &tokenizer, .help = "tokens", .words = {"char", "byte"}}};
  }
};

struct Experiment : Settings {
  std::string name = "run";
  std::int64_t seed = 1;
  std::optional<std::string> note;
  Text data;
  Choice model{{option<Gpt>("gpt", "decoder"), option<Recurrent>("recurrent_lm", "LSTM or GRU")}, "", nullptr};
  Train train;
  std::vector<std::string> probes;
  std::vector<Field> fields() override {
    return {{.name = "name", .target = &name, .help = "the run's folder"},
            {.name = "seed", .target = &seed, .help = "of every random stream"},
            {.name = "note", .target = &note, .help = "a remark"},
            {.name = "data", .target = &data, .help = "what to learn"},
            {.name = "model", .target = &model, .help = "the network", .required = true},
            {.name = "train", .target = &train, .help = "the loop"},
            {.name = "probes", .target = &probes, .help = "what to measure", .words = {"entropy", "max_weight"}}};
  }
};

}  // namespace sample
