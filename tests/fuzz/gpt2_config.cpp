#include "experiments/run/exchange/gpt_as_gpt2.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  Gpt2Config config;
  if (!fuzz::reads([&] { config = read_gpt2_config(fuzz::text_of(data, size), "config.json"); })) return 0;
  Gpt2Config const again = read_gpt2_config(gpt2_config_text(config, DType::float32, std::nullopt), "written");
  fuzz::must(again.vocabulary == config.vocabulary && again.settings.hidden() == config.settings.hidden());
  fuzz::must(again.settings.attention.scale == config.settings.attention.scale && again.settings.tie == config.settings.tie);
  fuzz::must(again.settings.activation == config.settings.activation && again.settings.layers == config.settings.layers);
  return 0;
}
