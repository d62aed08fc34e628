#pragma once

#include "experiments/train/experiment.hpp"
#include "nn/settings.hpp"
#include "tests/test.hpp"

/// Settings of every kind of field, in the manner of a real run's.
namespace sample {

using namespace heed;

struct Attention : Settings {
  std::string score = "scaled_dot", align = "softmax";
  double temperature = 1;
  std::vector<Field> fields() override {
    return {field(&score, "score", "score function").one_of({"dot", "scaled_dot", "general"}),
            field(&align, "align", "alignment function").one_of({"softmax", "local_p"}),
            field(&temperature, "temperature", "divides the scores").above(0)};
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
  Index layers = 4, heads = 4, width = 128;
  std::string position = "learned";
  Attention attention;
  double dropout = 0;
  bool bias = true;
  std::optional<Index> key_width;
  std::vector<Field> fields() override {
    return {field(&layers, "layers", "blocks").in(1, 1000),
            field(&heads, "heads", "attention heads").at_least(1),
            field(&width, "width", "features of a token").at_least(1),
            field(&position, "position", "position encoding").one_of({"none", "learned", "sinusoidal"}),
            field(&attention, "attention", "score, align"),
            field(&dropout, "dropout", "probability").in(0, 0.9),
            field(&bias, "bias", "biases of Linear layers"),
            field(&key_width, "key_width", "features of a key").at_least(1)};
  }
  std::optional<std::string> contradiction() override {
    if (width % heads != 0) return "width: must be divisible by heads (" + std::to_string(width) + " by " + std::to_string(heads) + ")";
    return std::nullopt;
  }
};

struct Recurrent : Settings {
  std::string cell = "lstm";
  Index width = 64;
  std::vector<Field> fields() override {
    return {field(&cell, "cell", "recurrent cell").one_of({"lstm", "gru"}), field(&width, "width", "features of a state").at_least(1)};
  }
};

struct Sgd : Settings {
  double lr = 0.1, momentum = 0;
  std::vector<Field> fields() override {
    return {field(&lr, "lr", "learning rate").above(0), field(&momentum, "momentum", "momentum").in(0, 1)};
  }
};

struct Adamw : Settings {
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  std::vector<Field> fields() override {
    return {field(&lr, "lr", "learning rate").above(0), field(&betas, "betas", "decay of the moments").in(0, 1)};
  }
};

struct Cosine : Settings {
  Index warmup = 100;
  double min_lr = 1e-4;
  std::vector<Field> fields() override { return {field(&warmup, "warmup", "steps").at_least(0), field(&min_lr, "min_lr", "final rate")}; }
};

template <class T>
Choice::Option option(std::string name, std::string help) {
  return {std::move(name), std::move(help), [] { return std::make_shared<T>(); }};
}

struct Train : Settings {
  Index steps = 2000;
  Choice optimizer{{option<Adamw>("adamw", "AdamW"), option<Sgd>("sgd", "momentum")}, "adamw", nullptr};
  Choice schedule{{option<Cosine>("cosine", "half a cosine")}, "", nullptr};
  std::optional<double> clip = 1;
  std::vector<Field> fields() override {
    return {field(&steps, "steps", "updates").at_least(1), field(&optimizer, "optimizer", "update rule"),
            field(&schedule, "schedule", "learning rate over time"), field(&clip, "clip", "largest gradient norm").above(0)};
  }
};

struct Text : Settings {
  std::string path, tokenizer = "char";
  std::vector<Field> fields() override {
    return {field(&path, "path", "a text file").mandatory(), field(&tokenizer, "tokenizer", "tokens").one_of({"char", "byte"})};
  }
};

struct Experiment : Settings {
  std::string name = "run";
  Index seed = 1;
  std::optional<std::string> note;
  Text data;
  Choice model{{option<Gpt>("gpt", "decoder"), option<Recurrent>("recurrent_lm", "LSTM or GRU")}, "", nullptr};
  Train train;
  std::vector<std::string> probes;
  std::vector<Field> fields() override {
    return {field(&name, "name", "the run's folder"),
            field(&seed, "seed", "of every random stream"),
            field(&note, "note", "a remark"),
            field(&data, "data", "what to learn"),
            field(&model, "model", "the network").mandatory(),
            field(&train, "train", "the loop"),
            field(&probes, "probes", "what to measure").one_of({"entropy", "max_weight"})};
  }
};

}  // namespace sample
