// The golden data: values, gradients and trajectories that PyTorch computed in float64. From $HEED_GOLDEN, else tests/golden.

#include "autograd/attention/linear_attention.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/ops/recurrence.hpp"
#include "experiments/train/train.hpp"
#include "nn/attention/attention.hpp"
#include "nn/files/safetensors.hpp"
#include "tests/difference.hpp"
#include "tests/experiments/trace.hpp"
#include "tests/nn/reference.hpp"
#include "tests/rooms.hpp"

namespace {

namespace fs = std::filesystem;
using namespace heed;
using json = test::Json;

fs::path golden_folder() {
  char const* const given = std::getenv("HEED_GOLDEN");
  return given != nullptr && *given != '\0' ? fs::path(given) : fs::path("tests/golden");
}

std::vector<fs::path> sorted_entries(fs::path const& folder) {
  std::vector<fs::path> paths;
  for (auto const& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

/// What the whole suite comes to: printed as its last line.
struct Tally {
  int compared = 0;
  double worst = 0;
  std::vector<std::string> skipped;

  ~Tally() {
    for (std::string const& name : skipped) fmt::print("golden: skipped {}\n", name);
    fmt::print("golden: {} compared, {} skipped, worst {:.2g}\n", compared, skipped.size(), worst);
    std::fflush(stdout);
  }
};
Tally& tally() {
  static Tally instance;
  return instance;
}

/// A case's tensors by name, each marked when it is used: one that nobody asks for is an error.
class Case {
 public:
  explicit Case(fs::path const& path, DType computed = DType::float64) : dtype(computed), file_(path) {
    attributes = json::parse(file_.metadata().at("attributes"));
    for (std::string const& name : file_.names()) unused_.insert(name);
  }
  std::string op() const { return file_.metadata().at("op"); }
  bool has(std::string const& name) const { return file_.contains(name); }
  Tensor read(std::string const& name) {
    unused_.erase(name);
    return file_.tensor(name);
  }
  /// An input or parameter as a leaf of the graph.
  Tensor leaf(std::string const& name) {
    Tensor value = read(name);
    if (value.dtype() != DType::int64) {
      value = value.to(dtype);
      value.set_requires_grad();
      leaves.emplace_back(name, value);
    }
    return value;
  }
  template <class T>
  T attribute(std::string const& name) {
    T const value = attributes.at(name).get<T>();
    attributes.erase(name);
    return value;
  }
  std::set<std::string> const& unused() const { return unused_; }

  DType const dtype;
  json attributes;
  std::vector<std::pair<std::string, Tensor>> leaves;

 private:
  SafetensorsFile file_;
  std::set<std::string> unused_;
};

using Outputs = std::vector<std::pair<std::string, Tensor>>;
using Runner = std::function<Outputs(Case&)>;

/// Relative to the largest element or to `min`, if that is more.
void compare(Tensor const& found, Tensor const& expected, std::string const& what, double min = 1) {
  bool const rounded = found.dtype() == DType::float32;
  double const error = test::relative_difference(found, expected, min);
  CHECK_MESSAGE(error <= (rounded ? 1e-5 : 1e-12), what << ": off by " << error);
  if (!rounded) tally().worst = test::worse(tally().worst, error);
}

Runner gives(std::function<Tensor(Case&)> const& f) {
  return [f](Case& c) { return Outputs{{"y", f(c)}}; };
}
Runner unary(Tensor (*f)(Tensor const&)) {
  return gives([f](Case& c) { return f(c.leaf("input.x")); });
}
Runner along_axis(std::function<Tensor(Tensor const&, Index)> f) {
  return gives([f](Case& c) { return f(c.leaf("input.x"), c.attribute<Index>("axis")); });
}
Runner binary(Tensor (*f)(Tensor const&, Tensor const&)) {
  return gives([f](Case& c) { return f(c.leaf("input.a"), c.leaf("input.b")); });
}

Tensor variance_case(Case& c) {
  auto const axis = c.attribute<Index>("axis");
  return variance(c.leaf("input.x"), {axis}, false, c.attribute<Index>("correction"));
}
Outputs cross_entropy_case(Case& c) {
  auto const smoothing = c.attribute<double>("label_smoothing");
  return {{"loss", cross_entropy(c.leaf("input.logits"), c.read("input.targets"), smoothing, c.attribute<Index>("ignore"))}};
}
Tensor conv2d_case(Case& c) {
  auto const stride = c.attribute<Index>("stride");
  return conv2d(c.leaf("input.x"), c.leaf("parameter.weight"), c.leaf("parameter.bias"), stride, c.attribute<Index>("padding"));
}
Tensor composite_case(Case& c) {
  REQUIRE(c.attribute<std::string>("formula") == "a / (b * b + 1)");
  Tensor const b = c.leaf("input.b");
  return c.leaf("input.a") / (b * b + 1);
}

/// A step of a recurrent cell, by its kernels or by simple operations.
Runner cell_case(CellForm cell, std::string gates) {
  return [cell, gates](Case& c) {
    REQUIRE(c.attribute<std::string>("gates") == gates);
    Tensor const x = c.leaf("input.x");
    States before{c.leaf("input.hidden")};
    if (states_of(cell) > 1) before.push_back(c.leaf("input.cell"));
    Tensor const a = linear(x, c.leaf("parameter.input.weight"), c.leaf("parameter.input.bias"));
    Tensor const weight = c.leaf("parameter.recurrent.weight"), bias = c.leaf("parameter.recurrent.bias");
    Tensor const y = scan(cell, {}, unsqueeze(a, 0), weight, bias, before);  // the output, and then the states
    States const after = cell_step(cell, a, linear(before[0], weight, bias), before);
    Outputs outputs{{"hidden", squeeze(slice(y, 0, 1, 2), 0)}};
    if (after.size() > 1) outputs.emplace_back("cell", squeeze(slice(y, 0, 2, 3), 0));
    for (std::size_t k = 0; k < after.size(); ++k) compare(after[k], outputs[k].second, "by steps");
    return outputs;
  };
}

std::map<std::string, Runner> const& runners() {
  static std::map<std::string, Runner> const table{
      {"add", binary(add)},
      {"subtract", binary(subtract)},
      {"multiply", binary(multiply)},
      {"maximum", binary(maximum)},
      {"divide_by_square_plus_one", gives(composite_case)},
      {"matmul", gives([](Case& c) { return matmul(c.leaf("input.a"), c.leaf("input.b")); })},
      {"gelu", unary(gelu)},
      {"gelu_exact", unary(gelu_exact)},
      {"relu", unary(relu)},
      {"silu", unary(silu)},
      {"softmax", along_axis(softmax)},
      {"log_softmax", along_axis(log_softmax)},
      {"logsumexp", along_axis([](Tensor const& x, Index axis) { return logsumexp(x, {axis}); })},
      {"variance", gives(variance_case)},
      {"layer_norm", gives([](Case& c) {
         return layer_norm(c.leaf("input.x"), c.leaf("parameter.weight"), c.leaf("parameter.bias"), c.attribute<double>("eps"));
       })},
      {"rms_norm", gives([](Case& c) { return rms_norm(c.leaf("input.x"), c.leaf("parameter.weight"), c.attribute<double>("eps")); })},
      {"cross_entropy", cross_entropy_case},
      {"embedding", gives([](Case& c) { return embedding(c.leaf("parameter.weight"), c.read("input.tokens")); })},
      {"conv2d", gives(conv2d_case)},
      {"gru_cell", cell_case(CellForm::gru, "reset, update, candidate (PyTorch)")},
      {"lstm_cell", cell_case(CellForm::lstm, "input, forget, candidate, output")},
  };
  return table;
}

/// The recurrence of linear attention, by head [B, H, T, …] in the file.
Outputs linear_attention_case(Case& c, bool by_kernel) {
  auto const decay = c.attribute<std::string>("decay"), write = c.attribute<std::string>("write");
  bool const normalised = c.attribute<std::string>("normaliser") == "sum";
  Tensor const key = c.leaf("input.key");
  Tensor value = c.leaf("input.value");
  Index const heads = key.size(1), width = value.size(3);
  LinearInputs in{.query = merge_heads(c.leaf("input.query")), .key = merge_heads(key)};
  if (decay == "head") in.log_decay = transpose(c.leaf("input.log_decay"));
  if (decay == "channel") in.log_decay = merge_heads(c.leaf("input.log_decay"));
  if (write != "add") {
    Tensor const strength = unsqueeze(c.leaf("input.strength"), -1);
    value = value * strength;
    if (write == "delta") in.erase = merge_heads(key * strength);
  }
  if (c.has("input.state")) in.state = c.leaf("input.state");
  REQUIRE((!normalised || !in.state.defined()));
  if (normalised) value = pad(value, -1, 0, 1, 1);
  in.value = merge_heads(value);
  auto const found = (by_kernel ? linear_attention : linear_attention_reference)({.heads = heads}, in, true);
  Tensor context = split_heads(found.context, heads);
  if (normalised) context = slice(context, -1, 0, width) / (slice(context, -1, width, width + 1) + 1e-6);
  return {{"context", context}, {"state", slice(found.state, -1, 0, width)}};
}

/// What is not there yet, or "".
std::string missing_part(std::string const& score, std::string const& align, std::string const& position) {
  if (Registry<ScoreKind>::find(score) == nullptr) return "score " + score;
  if (Registry<AlignKind>::find(align) == nullptr) return "align " + align;
  return Registry<PositionKind>::find(position) != nullptr ? "" : "position " + position;
}

/// Context by the kernel or by the reference; weights beside it.
Outputs attention_case(Case& c, bool by_kernel) {
  AttentionSettings settings;
  settings.score = c.attribute<std::string>("score");
  settings.align = c.attribute<std::string>("align");
  if (c.attributes.contains("scale")) settings.scale = c.attribute<std::string>("scale");
  if (c.attributes.contains("window")) settings.set("window", c.attribute<double>("window"));
  if (c.attributes.contains("softcap")) settings.softcap = c.attribute<double>("softcap");
  if (c.attributes.contains("windowed")) settings.set("windowed", c.attribute<bool>("windowed"));
  Tensor const query = c.leaf("input.query"), key = c.leaf("input.key"), value = c.leaf("input.value");
  Visibility const visibility{
      .causal = c.attribute<bool>("causal"), .lengths = c.has("input.lengths") ? c.read("input.lengths") : Tensor(), .offset = 0};

  Parameters parameters(1, DType::float64);
  PositionShape const shape{key.size(2) + 2, query.size(1) * query.size(3), query.size(1)};
  auto const position = make_position(c.attribute<std::string>("position"), Scope(parameters), shape);
  Attention const attention(Scope(parameters), settings, {query.size(1), query.size(3), key.size(2) + 2}, 0, position.get());
  NamedTensors values;
  for (auto const& [name, parameter] : parameters.all()) values.emplace_back(name, c.read("parameter." + name));
  parameters.assign(values);
  for (auto const& [name, parameter] : parameters.all()) c.leaves.emplace_back("parameter." + name, parameter);

  Tensor const q = attention.rotated(merge_heads(query), 0), k = attention.rotated(merge_heads(key), 0), v = merge_heads(value);
  Tensor const context = by_kernel ? attention(q, k, v, visibility, {}) : test::by_reference(attention, q, k, v, visibility);
  return {{"context", split_heads(context, query.size(1))}, {"weights", test::weights_of(attention, q, k, visibility)}};
}

/// Runs a case and compares all that it holds.
void run_case(fs::path const& path, Runner const& runner, DType dtype = DType::float64, double min = 1) {
  Case c(path, dtype);
  Outputs const outputs = runner(c);
  CHECK_MESSAGE(c.attributes.empty(), "unknown attributes: " << c.attributes.dump());
  std::vector<Tensor> inputs, results, seeds;
  for (auto const& [name, value] : outputs) {
    compare(value, c.read("output." + name), name, min);
    if (!c.has("grad_output." + name)) continue;
    results.push_back(value);
    seeds.push_back(c.read("grad_output." + name).to(dtype));
  }
  for (auto const& [name, leaf] : c.leaves) inputs.push_back(leaf);
  std::vector<Tensor> const gradients = grad(results, inputs, seeds);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    compare(gradients[i], c.read("grad_" + c.leaves[i].first), "grad_" + c.leaves[i].first, min);
  for (std::string const& name : c.unused()) FAIL_CHECK("unknown tensor: " << name);
}

/// What a trajectory's configuration asks for that is not there yet, or "".
std::string missing_in(Yaml const& config) {
  auto const text = [&](char const* key, char const* otherwise) {
    Yaml const* const found = config.find(key);
    return found != nullptr ? found->text : otherwise;
  };
  std::string const kind = text("model.kind", "");
  if (Registry<ModelKind>::find(kind) == nullptr) return "model " + kind;
  return missing_part(text("model.attention.score", "scaled_dot"), text("model.attention.align", "softmax"),
                      text("model.position", "learned"));
}

/// How far every step's gradient norm moves, in float64, where the weights alone are rounded as float32 rounds them, by up to 2⁻²⁴: the
/// largest relative change of four draws. A norm that divides by a small number moves further than rounding errors elsewhere.
std::vector<double> conditioning(fs::path const& folder) {
  auto const experiment = load_experiment(folder / "config.yaml", {"dtype=float64"}, {});
  auto const expected = test::json_rows(folder / "expected.jsonl");
  std::vector<double> moved(expected.size(), 0.0);
  for (std::uint64_t draw = 0; draw < 4; ++draw) {
    Trainer trainer(experiment, true);
    for (auto const& [name, parameter] : trainer.parameters().all()) {
      Tensor rounded = parameter;
      Tensor const by = Tensor::uniform(rounded.shape(), Stream(draw, name), DType::float64, -1, 1);
      auto const values = rounded.mutable_data<double>();
      for (Index i = 0; i < std::ssize(values); ++i) heed::at(values, i) *= 1 + std::exp2(-24) * by.at(i);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      Row found{trainer.step(), {}};
      trainer.train_step(found);
      moved[i] = std::max(moved[i], std::abs(*found.find("grad_norm") / expected[i]["grad_norm"].get<double>() - 1));
    }
  }
  return moved;
}

void compare_trajectory(fs::path const& folder, std::string const& dtype, double loss_bound, double norm_bound) {
  CAPTURE(dtype);
  auto const experiment = load_experiment(folder / "config.yaml", {"dtype=" + dtype}, {});
  auto const expected = test::json_rows(folder / "expected.jsonl");
  REQUIRE(std::ssize(expected) == experiment.settings.train.steps);
  Trainer trainer(experiment, true);
  std::vector<double> moved;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Row found{trainer.step(), {}};
    trainer.train_step(found);
    CHECK(found.step == expected[i]["step"].get<Index>());
    for (auto const& bound : std::map<std::string, double>{{"loss", loss_bound}, {"grad_norm", norm_bound}, {"lr", 1e-12}}) {
      double const error = std::abs(*found.find(bound.first) / expected[i][bound.first].get<double>() - 1);
      // In float32 every result is rounded, not the weights alone: some sixty from one end of a model to the other, √60 ≈ 8.
      if (error > bound.second && dtype == "float32" && bound.first == "grad_norm") {
        if (moved.empty()) moved = conditioning(folder);
        INFO("rounded weights move it by ", moved[i]);
        CHECK_MESSAGE(error <= 8 * moved[i], "step " << i << ", grad_norm: off by " << error);
        continue;
      }
      CHECK_MESSAGE(error <= bound.second, "step " << i << ", " << bound.first << ": off by " << error);
      if (dtype == "float64") tally().worst = test::worse(tally().worst, error);
    }
  }
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("operations") {
    tally();
    fs::path const folder = golden_folder() / "ops";
    REQUIRE_MESSAGE(fs::is_directory(folder), folder.string() << " is not there");
    for (fs::path const& path : sorted_entries(folder)) {
      std::string const name = path.stem().string();
      CAPTURE(name);
      Case const description(path);
      if (description.op() == "attention") {
        auto const& given = description.attributes;
        std::string const missing = missing_part(given.at("score"), given.at("align"), given.at("position"));
        if (!missing.empty()) {
          tally().skipped.push_back(fmt::format("{} (no {} yet)", name, missing));
          continue;
        }
        run_case(path, [](Case& c) { return attention_case(c, true); });
        run_case(path, [](Case& c) { return attention_case(c, false); });
      } else if (description.op() == "linear_attention") {
        run_case(
            path, [](Case& c) { return linear_attention_case(c, true); }, DType::float64, 0);
        run_case(
            path, [](Case& c) { return linear_attention_case(c, false); }, DType::float64, 0);
        run_case(
            path, [](Case& c) { return linear_attention_case(c, true); }, DType::float32, 0);
      } else if (auto const runner = runners().find(description.op()); runner != runners().end()) {
        run_case(path, runner->second);
      } else {
        tally().skipped.push_back(fmt::format("{} (no operation {} yet)", name, description.op()));
        continue;
      }
      ++tally().compared;
    }
    CHECK_MESSAGE(tally().skipped.empty(), "there are cases that nothing here computes");
  }

  TEST_CASE("trajectories") {
    fs::path const folder = golden_folder() / "trajectories";
    REQUIRE_MESSAGE(fs::is_directory(folder), folder.string() << " is not there");
    for (fs::path const& path : sorted_entries(folder)) {
      std::string const name = path.filename().string();
      CAPTURE(name);
      std::string const missing = missing_in(load_yaml((path / "config.yaml").string()));
      if (missing.starts_with("model recurrent") && !test::has_room("recurrent")) continue;
      if (missing == "model transformer" && !test::has_room("translation")) continue;
      if (!missing.empty()) {
        tally().skipped.push_back(fmt::format("{} (no {} yet)", name, missing));
        continue;
      }
      compare_trajectory(path, "float64", 1e-10, 1e-10);
      {
        ReferenceAttention const no_kernels;
        ReferenceCells const no_scan;
        INFO("by the reference");
        compare_trajectory(path, "float64", 1e-10, 1e-10);
      }
      compare_trajectory(path, "float32", 1e-5, 1e-4);
      ++tally().compared;
    }
    CHECK_MESSAGE(tally().skipped.empty(), "there are trajectories that nothing here computes");
  }
}
