#pragma once

#include <memory>
#include <string>
#include <utility>

#include "autograd/attention/pair_formula.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/steps.hpp"

/// Scores from two formulas (autograd/attention/pair_formula.hpp): e_ij = g(Σ_c f(q_ic, k_jc, w_c), at). They use the fused kernels, with
/// derivatives generated from the formulas.
namespace heed {

/// Parameters of the formulas.
struct PairScoreParts {
  std::string weight = {};     ///< name of f's w, a parameter [H, d], initially N(0, 1/d)
  std::string parameter = {};  ///< name of g's p, a parameter [H]
  double start = 1;            ///< initial value of p
};

/// A score made of a pair sum and a finish.
class PairScore : public Score {
 public:
  /// `kinks_of`: for query [B, H, n, 1, d] and key [B, H, 1, m, d], values that change sign where the score is not smooth; null: nowhere.
  PairScore(std::shared_ptr<PairSum const> sum, std::shared_ptr<PairFinish const> finish, Tensor weight, Tensor parameter,
            Tensor (*kinks_of)(Tensor const&, Tensor const&))
      : sum_(std::move(sum)), finish_(std::move(finish)), weight_(std::move(weight)), parameter_(std::move(parameter)), kinks_(kinks_of) {}
  Tensor kinks(Tensor const& query, Tensor const& key) const override {
    return kinks_ != nullptr ? kinks_(unsqueeze(query, 3), unsqueeze(key, 2)) : Tensor();
  }
  void fill(AttentionForm& form, AttentionInputs& in) const override {
    form.sum = sum_, form.finish = finish_, in.weight = weight_;
    if (parameter_.defined()) in.parameter = unsqueeze(parameter_, 1);
  }

 private:
  std::shared_ptr<PairSum const> sum_;
  std::shared_ptr<PairFinish const> finish_;
  Tensor weight_, parameter_;  // [H, d], [H]
  Tensor (*kinks_)(Tensor const&, Tensor const&);
};

/// The factory of a score, for its declaration: pair_score(f, g, kinks), with f(q, k) or f(q, k, w), g(s, at), and kinks(q, k) of Tensors,
/// which changes sign where the score is not smooth.
template <class F, class G>
auto pair_score(F f, G g, PairScoreParts const& parts = {}, Tensor (*kinks)(Tensor const&, Tensor const&) = nullptr) {
  return [sum = pair_sum(f), finish = pair_finish(g), parts, kinks](Scope const& scope, AttentionSettings const&, HeadShape const& shape) {
    Tensor const weight =
        parts.weight.empty() ? Tensor()
                             : scope.parameter(parts.weight, {shape.heads, shape.width}, Initial::preserving(shape.width), WeightDecay::on);
    Tensor const parameter = parts.parameter.empty()
                                 ? Tensor()
                                 : scope.parameter(parts.parameter, {shape.heads}, Initial::constant(parts.start), WeightDecay::off);
    return std::make_unique<PairScore>(sum, finish, weight, parameter, kinks);
  };
}

}  // namespace heed
