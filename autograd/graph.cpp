#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <unordered_set>

#include <fmt/format.h>

#include "autograd/graph_memory.hpp"
#include "autograd/node.hpp"

namespace heed {

namespace {

thread_local bool recording_now = true;
thread_local bool anomaly_now = false;
thread_local std::string const* part_now = nullptr;
std::atomic<Index> recompute_from = Index{2} << 20;

std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

/// The one copy of a name: nodes point to it.
std::string const* intern(std::string const& name) {
  static std::mutex mutex;
  static auto* const names = new std::unordered_set<std::string>;
  std::lock_guard const lock(mutex);
  return &*names->insert(name).first;
}

[[gnu::cold, noreturn]] void refuse_written(Node const& node, std::string const& what, Tensor const& x) {
  throw Error(
      fmt::format("backward: {} of {}, {} {}, was written to after {} had used it, and its derivative needs what was there; write to a "
                  "clone() instead",
                  what, describe(node), to_string(x.dtype()), to_string(x.shape()), node.operation));
}

}  // namespace

bool recording() { return recording_now; }
Recording::Recording(bool on) : Temporarily(recording_now, on) {}

bool anomaly_mode() { return anomaly_now; }
Anomaly::Anomaly() : Temporarily(anomaly_now, true) {}

ModelPart::ModelPart(std::string const& name) : Temporarily(part_now, intern(name)) {}
ModelPart::ModelPart(Node const& node) : Temporarily(part_now, node.part) {}

Node::Node(char const* name) : sequence(next_sequence()), operation(name), part(part_now) {}

Node::~Node() {
  // A node that goes may take its inputs' nodes with it, and they theirs: queue them instead of recursing.
  thread_local std::vector<std::shared_ptr<Node>>* queue = nullptr;
  std::vector<std::shared_ptr<Node>> own;
  bool const outermost = queue == nullptr;
  if (outermost) queue = &own;
  for (Tensor& input : inputs)
    if (input.node()) queue->push_back(input.node());
  inputs.clear();
  if (!outermost) return;
  while (!own.empty()) {
    std::shared_ptr<Node> const next = std::move(own.back());
    own.pop_back();
  }
  queue = nullptr;
}

void Node::consume() {
  rule = nullptr;
  recompute = nullptr;
  inputs.clear();
  output = {};
  consumed = true;
}

void require_alike(char const* function, char const* what, Tensor const& given, char const* of, Tensor const& like) {
  if (given.shape() == like.shape() && given.dtype() == like.dtype()) return;
  throw Error(fmt::format("{}: {} is {} {}, {} {} {}", function, what, to_string(given.dtype()), to_string(given.shape()), of,
                          to_string(like.dtype()), to_string(like.shape())));
}

std::string describe(Node const& node) {
  return node.part != nullptr ? fmt::format("{} in {}", node.operation, *node.part) : node.operation;
}

void check_finite(Tensor const& value, std::string const& what) {
  if (!anomaly_now || value.dtype() == DType::int64) return;
  Index const count = value.elements();
  for (Index i = 0; i < count; ++i) {
    double const element = value.at(i);
    if (std::isfinite(element)) continue;
    throw NonFinite(fmt::format("{}: {} at element {} of {}", what, std::isnan(element) ? "NaN" : "infinity", i, to_string(value.shape())));
  }
}

Tensor record(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule rule) {
  if (anomaly_now) check_finite(value, part_now != nullptr ? fmt::format("{} in {}", operation, *part_now) : operation);
  if (!recording_now || !std::ranges::any_of(inputs, &Tensor::requires_grad)) return value;
  auto node = std::make_shared<Node>(operation);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      node->absent.resize(inputs.size());
      node->absent[i] = true;
    }
    if (!inputs[i].requires_grad()) inputs[i].set_node(nullptr);  // frozen
    bool const kept = keep.inputs[std::min(i, keep.inputs.size() - 1)];
    bool const recomputed = kept && inputs[i].node() && inputs[i].node()->recompute;
    if (recomputed) {
      node->recomputed.resize(inputs.size());
      node->recomputed[i] = true;
    }
    if (kept && !recomputed)
      inputs[i].watch();
    else
      inputs[i] = inputs[i].hollow();
  }
  node->inputs = std::move(inputs);
  node->output = keep.output ? value.detach() : value.detach().hollow();
  node->output.watch();
  node->rule = std::move(rule);
  node->adds = keep.sum;
  value.set_node(std::move(node));
  return value;
}

Index recompute_bytes() { return recompute_from.load(std::memory_order_relaxed); }
void set_recompute_bytes(Index bytes) { recompute_from = bytes; }

Tensor recomputable(Tensor value, Recompute recompute) {
  bool const large = value.elements() * static_cast<Index>(bytes_of(value.dtype())) >= recompute_bytes();
  if (large && value.node() && !value.node()->is_leaf()) value.node()->recompute = std::move(recompute);
  return value;
}

void require_unwritten(Node const& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].written_since()) [[likely]]
      continue;
    auto const given = [&](std::size_t count) {  // of the first inputs
      std::size_t present = count;
      for (std::size_t j = 0; j < count && !node.absent.empty(); ++j) present -= node.absent[j] ? 1 : 0;
      return present;
    };
    refuse_written(node, fmt::format("input {} (of {})", given(i + 1), given(node.inputs.size())), node.inputs[i]);
  }
  if (node.output.written_since()) refuse_written(node, "the result", node.output);
}

Tensor recomputed(Tensor const& hollow) {
  std::vector<Node*> wanted{hollow.node().get()};
  while (!wanted.empty()) {
    Node& maker = *wanted.back();
    if (maker.output.defined()) {
      wanted.pop_back();
      continue;
    }
    auto const before = wanted.size();
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < maker.inputs.size(); ++i) {
      Tensor const& input = maker.inputs[i];
      bool const from_node = maker.recomputes(i);
      if (from_node && !input.node()->output.defined()) wanted.push_back(input.node().get());
      inputs.push_back(from_node ? input.node()->output : input.detach());
    }
    if (wanted.size() != before) continue;
    require_unwritten(maker);
    maker.output = maker.recompute(inputs);
    maker.output.watch();
  }
  Tensor result = hollow.node()->output;
  result.set_node(hollow.node());
  return result;
}

void forget_recomputed(Node const& user) {
  for (std::size_t i = 0; i < user.inputs.size(); ++i) {
    if (!user.recomputes(i)) continue;
    Node* maker = user.inputs[i].node().get();
    Tensor const array = maker->output;
    while (maker != nullptr && maker->output.defined() && maker->output.shares_array_with(array)) {  // under other shapes too
      maker->output = maker->output.hollow();
      maker = maker->recomputes(0) ? maker->inputs[0].node().get() : nullptr;
    }
  }
}

std::map<std::uint64_t, Node const*> nodes_behind(std::vector<Tensor> const& outputs, std::unordered_map<Node const*, Tensor> const* ends) {
  std::map<std::uint64_t, Node const*> nodes;
  std::vector<Node const*> stack;
  for (Tensor const& output : outputs) stack.push_back(output.node().get());
  while (!stack.empty()) {
    Node const* const node = stack.back();
    stack.pop_back();
    if (node == nullptr || !nodes.emplace(node->sequence, node).second || (ends != nullptr && ends->contains(node))) continue;
    for (Tensor const& input : node->inputs) stack.push_back(input.node().get());
  }
  return nodes;
}

Tensor alias(Tensor const& x) {
  return record("alias", {x}, x.detach(), keep_nothing, [](BackwardContext const& s) { return std::vector{s.dy}; });
}

// What of a tensor belongs to the graph.

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  return record("to", {*this}, converted(dtype), keep_nothing,
                [](BackwardContext const& s) { return std::vector{s.dy.to(s.x().dtype())}; });
}

Tensor& Tensor::set_requires_grad(bool wanted) {
  if (wanted && dtype_ == DType::int64) throw Error("requires_grad: integers have no gradient");
  if (!wanted) {
    node_ = nullptr;
  } else if (node_ == nullptr || !node_->is_leaf()) {
    node_ = std::make_shared<Node>("leaf");
  }
  return *this;
}

void Tensor::set_frozen(bool frozen) {
  if (node_ == nullptr || !node_->is_leaf()) throw Error("set_frozen: the tensor is no leaf of the graph");
  node_->frozen = frozen;
  node_->gradient = {};
}

bool Tensor::frozen() const { return node_ != nullptr && node_->frozen; }

Tensor Tensor::grad() const { return node_ ? node_->gradient : Tensor(); }

void Tensor::set_grad(Tensor gradient) {
  if (!node_) throw Error("set_grad: the tensor does not require a gradient");
  if (gradient.defined()) {
    require_alike("set_grad", "the gradient", gradient, "the tensor", *this);
    gradient.own().node_ = nullptr;
  }
  node_->gradient = std::move(gradient);
}

void Tensor::on_gradient(std::function<Tensor(Tensor const&)> hook) {
  if (!node_) throw Error("on_gradient: the tensor does not require a gradient");
  node_->hooks.push_back(std::move(hook));
}

Index critical_path(Tensor const& output) {
  std::unordered_map<Node const*, Index> depth;
  for (auto const& [sequence, node] : nodes_behind({output})) {
    Index before = 0;
    for (Tensor const& input : node->inputs)
      if (input.node()) before = std::max(before, depth.at(input.node().get()));
    depth[node] = before + (node->is_leaf() ? 0 : node->depth);
  }
  return output.node() ? depth.at(output.node().get()) : 0;
}

}  // namespace heed
