// a_i = softmax(e_i) over the visible keys with |j − p_i| ≤ D, p_i = i: monotonic local attention

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct LocalM : Align {
  LocalM(Scope const&, AttentionSettings const& settings, HeadShape const&) : window(settings.number("window")) {}
  void fill(AttentionForm& form, AttentionInputs&, Tensor const&) const override { form.window = window; }

  double window;
};

Declared<AlignKind> const local_m_align{{"local_m",
                                         "softmax over |j − i| ≤ D",
                                         "Luong et al. 2015",
                                         "n D",
                                         "everywhere",
                                         makes<LocalM>,
                                         Compares::same_width,
                                         true,
                                         {{"window", "half-width D of the window of local_m and local_p, in keys", 10.0}}}};

}  // namespace

}  // namespace heed
