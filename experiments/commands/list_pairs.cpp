// heed list pairs

#include "experiments/data/pairs/pair_task.hpp"
#include "experiments/program/command.hpp"

namespace heed {

namespace {

Declared<ListTopic> const pairs_topic{
    choice_topic(9, "pairs", "synthetic pairs of sequences, for `data: {kind: pairs, task: NAME}`; with NAME: its keys",
                 [] { return choice_of<PairKind>(); })};

}  // namespace

}  // namespace heed
