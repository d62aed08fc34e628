#include "experiments/exchange/huggingface.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  Gpt2Config config;
  if (!reads([&] { config = read_gpt2_config(text, "config.json"); })) return;
  Gpt2Config const again = read_gpt2_config(gpt2_config_text(config, DType::float32, std::nullopt), "written");
  must(again.vocabulary == config.vocabulary && again.settings.hidden() == config.settings.hidden());
  must(again.settings.attention.scale == config.settings.attention.scale && again.settings.tie == config.settings.tie);
  must(again.settings.activation == config.settings.activation && again.settings.layers == config.settings.layers);
}
