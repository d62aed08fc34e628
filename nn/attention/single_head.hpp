#pragma once

#include <optional>

#include "nn/attention/attention.hpp"

namespace heed {

/// Attention of one head from states of one network to those of another (Bahdanau et al. 2015, Luong et al. 2015). The query and the keys
/// are the states, or what `query` and `key` make of them where the score wants projections, or one width, which they have not; the values
/// are the states. In the words of the two views of the literature: by alignment, a query and the hidden states that it is compared with;
/// by memory, queries, keys and values.
class SingleHead {
 public:
  /// `width`: of a query; `memory`: of the states that it attends to; `context`: the most of them; `parts`: as Attention's.
  SingleHead(Scope const& scope, AttentionSettings const& settings, std::int64_t width, std::int64_t memory, std::int64_t context,
             AttentionParts const& parts);

  /// What looks of any number share: keys and values of the states [B, S, memory].
  Projected project(Tensor const& states) const;
  /// query [B, n, width], the first at visibility.offset → contexts [B, n, memory].
  Tensor attend(Tensor const& query, Projected const& memory, Visibility const& visibility, Pass const& pass) const;

  std::string const& part() const { return part_; }
  AttentionParts const& parts() const { return parts_; }

 private:
  std::string part_;
  AttentionParts parts_;
  std::optional<Linear> query_, key_;
  Attention attention_;
};

}  // namespace heed
