#include "experiments/train/zero_shot.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/view.hpp"
#include "experiments/metric/info.hpp"
#include "nn/decode.hpp"
#include "nn/files/sha256.hpp"
#include "nn/heads/head.hpp"

namespace heed {

namespace {

Declared<MetricInfo> const zero_shot_metric{{"validation.zero_shot.*", "", Better::higher,
                                             "zero-shot accuracy on the held-out examples of a multiple choice, by likelihood", fraction}};
Declared<MetricInfo> const averaged_zero_shot_metric{
    {"validation.ema.zero_shot.*", "", Better::higher,
     "zero-shot accuracy on the held-out examples of a multiple choice; of averaged weights", fraction}};

/// A file of one section, `data:`.
struct Described : Settings {
  Choice data = choice_of<DataKind>();
  std::vector<Field> fields() override { return {field(&data, "data", "examples with options").mandatory()}; }
};

/// Its examples as the language model reads them: text and option, in its own tokens.
std::unique_ptr<Dataset> opened(fs::path const& file, DataContext const& context, Dataset const& trained) {
  auto const document = load(file);
  Described described;
  fill(document, described);
  auto* const examples = dynamic_cast<ExampleSource*>(described.data.settings.get());
  if (examples == nullptr)
    throw ConfigError(location_of(document, "data.kind"), fmt::format("data.kind: {} are not labelled examples", described.data.kind));
  DataContext own = context;
  own.kind = described.data.kind;
  own.config_folder = fs::absolute(file).parent_path();
  auto read = examples->read(own);
  read.join = examples->join;
  auto data = examples_data(std::move(read), trained.facts().tokenizer, examples->pool, context.seed);
  if (!data->signature().has("options"))
    throw ConfigError(location_of(document, "data"), "data: these examples have no options to choose from (options: [\"…\", \"…\"])");
  return make_view("continued", std::move(data), context.seed);
}

}  // namespace

ZeroShot::ZeroShot(LoadedExperiment const& experiment, DataContext const& context, Dataset const& data, Model const& model)
    : model_(model), rows_(experiment.settings.train.evaluate.batch.value_or(experiment.settings.train.batch)) {
  auto const& files = experiment.settings.train.evaluate.zero_shot;
  for (std::size_t item = 0; item < files.size(); ++item) {
    auto const refuse = [&](std::string const& why) {
      experiment.refuse("train.evaluate.zero_shot", fmt::format("{}: {}", files[item], why), item);
    };
    if (!model.decode({}, {})) refuse("the model does not continue texts");
    if (!data.facts().tokenizer) refuse("the data that it is trained on have no tokens of text");
    auto const name = fs::path(files[item]).stem().string();
    if (std::ranges::find(tasks_, name, &ZeroShotTask::name) != tasks_.end()) refuse("another file has this name");
    auto const file = locate(files[item], context);
    tasks_.push_back({name, file, opened(file, context, data)});
  }
}

double ZeroShot::accuracy(Dataset const& data) const {
  NoGrad const no_grad;
  double right = 0, all = 0;
  for (Index i = 0; i < data.validation_batches(rows_, model_.context()); ++i) {
    Batch const batch = data.validation(i, rows_, model_.context());
    Index const options = batch["inputs"].size(1);
    Tensor const inputs = batch["inputs"].viewed({batch["inputs"].size(0) * options, batch["inputs"].size(2)});
    LinearHead const words = model_.run({{"inputs", inputs}}, {}).predictions.front().head;
    auto const scores = option_scores(words, batch["targets"], true).to_vector();
    auto const labels = batch["label"].data<std::int64_t>();
    for (std::size_t row = 0; row < labels.size(); ++row) {
      auto const first = scores.begin() + static_cast<std::ptrdiff_t>(row) * options;
      right += std::max_element(first, first + options) - first == labels[row] ? 1 : 0;
      all += 1;
    }
  }
  return right / all;
}

void ZeroShot::measure(Row& row, std::string const& prefix) const {
  for (ZeroShotTask const& task : tasks_) row.set(fmt::format("{}.zero_shot.{}", prefix, task.name), accuracy(*task.data));
}

ReadFiles ZeroShot::files() const {
  ReadFiles all;
  for (ZeroShotTask const& task : tasks_) {
    all[fmt::format("zero_shot.{}", task.name)] = {task.file.string(), sha256_of_file(task.file)};
    for (auto const& [of, file] : task.data->facts().files) all[fmt::format("zero_shot.{}.{}", task.name, of)] = file;
  }
  return all;
}

}  // namespace heed
