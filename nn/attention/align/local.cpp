// Local attention. Monotonic ("local_m"): a_i = softmax(e_i) over the visible keys with |j − p_i| ≤ D, p_i = i. Predictive ("local_p"):
// p_i = n_i · sigmoid(v_pᵀ tanh(W_p q_i)); a_ij = softmax over the visible keys with |j − p_i| ≤ D, times exp(−(j − p_i)²/(2σ²)), σ = D/2

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct LocalM : Align {
  LocalM(Scope const&, AttentionSettings const& settings, HeadShape const&) : window(settings.number("window")) {}
  void fill(AttentionForm& form, AttentionInputs&, Tensor const&) const override { form.window = window; }

  double window;
};

struct LocalP : Align {
  LocalP(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape)
      : window(settings.number("window")),
        windowed(settings.flag("windowed")),
        matrix(
            scope.parameter("position_matrix", {shape.heads, shape.width, shape.width}, Initial::preserving(shape.width), WeightDecay::on)),
        vector(scope.parameter("position_vector", {shape.heads, shape.width}, Initial::preserving(shape.width), WeightDecay::on)) {}

  void fill(AttentionForm& form, AttentionInputs& in, Tensor const& query) const override {
    Tensor const where_to = unsqueeze(head_readout(query, transpose(matrix), vector, form.heads), 3);  // [B, H, n, 1]
    Index const first = form.visibility.first_key;
    Visibility all = form.visibility;  // of the whole sequence: a centre is a place in it, seen through a sliding window or not
    all.sees = all.first_key = 0, all.offset += first;
    in.centres = all.counts(query.size(1), first + in.key.size(1), query.dtype()) * sigmoid(where_to);
    if (first > 0) in.centres = in.centres - static_cast<double>(first);
    form.window = windowed ? window : 0, form.gaussian = true, form.deviation = window / 2;
  }

  double window;
  bool windowed;
  Tensor matrix;  // [H, d, d]
  Tensor vector;  // [H, d]
};

StepKey const window_key{"window", "half-width D of the window of local_m and local_p, in keys", 10.0};
StepKey const windowed_key{"windowed", "local_p only; false: the Gaussian without a window", true};

Declared<AlignKind> const local_m_align{{"local_m",
                                         "softmax over |j − i| ≤ D",
                                         "Luong et al. 2015",
                                         "n D",
                                         "everywhere",
                                         makes<LocalM>,
                                         Compares::same_width,
                                         true,
                                         {window_key}}};
Declared<AlignKind> const local_p_align{{"local_p",
                                         "softmax over |j − p_i| ≤ D, · e^{−(j − p_i)²/(2σ²)}",
                                         "Luong et al. 2015",
                                         "n (D + d²)",
                                         "except where a key enters the window",
                                         makes<LocalP>,
                                         Compares::same_width,
                                         false,
                                         {window_key, windowed_key}}};

}  // namespace

}  // namespace heed
