// a_i = softmax(e_i) over the visible keys with |j − p_i| ≤ D, p_i = i: monotonic local attention

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct LocalM : Align {
  explicit LocalM(double reach) : window(reach) {}
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    std::vector<double> centres;
    for (std::int64_t i = 0; i < scores.size(-2); ++i) centres.push_back(static_cast<double>(visibility.offset + i));
    Tensor const positions = Tensor::of(centres, {1, 1, scores.size(-2), 1}, scores.dtype());
    return masked_softmax(scores, window_mask(positions, window, visibility, scores.size(-1)));
  }
  std::optional<FusedAlign> fused(Tensor const&, std::int64_t, std::int64_t, Visibility const&) const override {
    return FusedAlign{.window = window};
  }

  double window;
};

Declared<Align> const declared{
    {"local_m", "softmax over |j − i| ≤ D", "Luong et al. 2015", "n D", "everywhere",
     [](Scope const&, AttentionSettings const& settings, HeadShape const&) { return std::make_unique<LocalM>(settings.window); },
     Compares::same_width, true}};

}  // namespace

}  // namespace heed
