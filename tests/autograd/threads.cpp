// Several threads that use the engine at once, each with graphs of its own.

#include <atomic>
#include <barrier>
#include <thread>

#include "autograd/blas/products.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/ops/recurrence.hpp"
#include "autograd/parallel.hpp"
#include "nn/models/blocks.hpp"
#include "tests/autograd/tensors.hpp"
#include "tests/nn/models.hpp"
#include "tests/refusal.hpp"

namespace heed {
namespace {

using test::normal, test::normal_leaf;
using Results = std::vector<Tensor>;

/// What a thread computes; `name` gives its random numbers.
struct Work {
  std::string what;
  std::function<Results(std::string const& name)> of;
};

/// A GPT that threads share: they compute with its parameters, and write to none.
struct SharedGpt {
  explicit SharedGpt(std::string const& position)
      : parameters(1, DType::float32, test::wide()), model(parameters, test::small_stack<GptSettings>("scaled", position, 32), 7) {}
  Results of(std::string const& name) const {
    Tensor const tokens = test::random_tokens({8, 12}, 7, name);
    Batch const batch{{"inputs", tokens}, {"targets", tokens}};
    Tensor const loss = model.loss(batch, Pass());
    std::vector<Tensor> leaves;
    for (auto const& [part, parameter] : parameters.all()) leaves.push_back(parameter);
    Results results = grad({loss}, leaves);
    results.push_back(model.logits(batch, Pass()));
    return results;
  }

  Parameters parameters;
  Gpt model;
};

/// Steps of gradient descent on leaves of this thread.
Results trained(std::string const& name) {
  Tensor first = normal_leaf({64, 32}, name + " first", DType::float32), second = normal_leaf({10, 64}, name + " second", DType::float32);
  Tensor const norm = Tensor::ones({64}, DType::float32), x = normal({256, 32}, name, DType::float32);
  Tensor const classes = test::random_tokens({256}, 10, name);
  for (int step = 0; step < 3; ++step) {
    Tensor const hidden = gelu(layer_norm(linear(x, first, {}), norm, {}));
    cross_entropy(linear(dropout(hidden, 0.1, Stream(1, name)), second, {}), classes).backward();
    for (Tensor* leaf : {&first, &second}) {
      copy_elements(leaf->detach() - 0.1 * leaf->grad(), *leaf);
      leaf->clear_grad();
    }
  }
  return {first, second};
}

std::vector<Work> work() {
  auto const learned = std::make_shared<SharedGpt>("learned"), sinusoidal = std::make_shared<SharedGpt>("sinusoidal");
  return {{"training", trained},
          {"a GPT with learned positions", [=](auto const& name) { return learned->of(name); }},
          {"a GPT with a table of positions", [=](auto const& name) { return sinusoidal->of(name); }},
          {"second derivatives in float64",
           [](auto const& name) {
             Tensor const a = normal({48, 48}, name + " a"), x = normal({48, 48}, name), v = normal({48, 48}, name + " v");
             return Results{hessian_vector_product([&](Tensor const& p) { return sum(tanh(matmul(a, p)) * p); }, x, v)};
           }},
          {"a scan",
           [](auto const& name) {
             Tensor const a = normal_leaf({6, 8, 64}, name), weight = normal_leaf({64, 16}, name + " weight");
             States const start{Tensor::zeros({8, 16}, DType::float64), Tensor::zeros({8, 16}, DType::float64)};
             return grad({sum(scan(CellForm::lstm, {}, a, weight, {}, start))}, {a, weight});
           }},
          {"what is computed again, and in bfloat16's place", [](auto const& name) {
             Tensor const x = normal_leaf({128, 64}, name, DType::float32), w = normal_leaf({64, 64}, name + " w", DType::float32);
             auto const f = [](std::vector<Tensor> const& in) { return softmax(gelu(matmul(in[0], in[1]))); };
             return grad({sum(checkpoint(f, {x, w}) * x)}, {x, w});
           }}};
}

/// Calls f(i) on `count` threads, which begin together; what any of them has thrown is thrown here.
template <class F>
void on_threads(int count, F const& f) {
  std::barrier<> start(count);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(count));
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        f(i);
      } catch (...) {
        at(thrown, i) = std::current_exception();
      }
    });
  }
  for (auto& thread : all) thread.join();
  for (auto const& each : thrown)
    if (each) std::rethrow_exception(each);
}

std::string name_of(int thread) { return fmt::format("thread {}", thread); }

TEST_SUITE("threads") {
  TEST_CASE("threads with graphs of their own have the bits of one alone") {
    constexpr int threads_at_once = 4, rounds = 3;
    for (Work const& each : work()) {
      CAPTURE(each.what);
      std::vector<Results> alone;
      for (int i = 0; i < threads_at_once; ++i) alone.push_back(each.of(name_of(i)));
      for (int const pool : {1, 2, 3}) {
        Threads const some(pool);
        std::atomic<int> different = 0;
        on_threads(threads_at_once, [&](int i) {
          for (int round = 0; round < rounds; ++round)
            if (!test::same_bits(each.of(name_of(i)), at(alone, i))) ++different;
        });
        CHECK(different == 0);
      }
    }
  }

  TEST_CASE("regions of several threads at once meet every element once, and an error reaches the thread whose it is") {
    Threads const two(2);
    std::atomic<int> wrong = 0;
    on_threads(4, [&](int thread) {
      for (int round = 0; round < 200; ++round) {
        std::vector<std::atomic<int>> met(100);
        bool const fails = (round + thread) % 5 == 0;
        auto const meet = [&](Index sweep, Index begin, Index end) {
          for (Index i = begin; i < end; ++i)
            if (at(met, i)++ != sweep) ++wrong;
          if (fails && begin == 0 && sweep == 1) throw Error(name_of(thread));
        };
        std::string const error = test::refusal([&] { parallel_sweeps(2, 100, 1e5, meet, 6); });
        if (error != (fails ? name_of(thread) : "")) ++wrong;
        if (!fails && !std::ranges::all_of(met, [](auto const& times) { return times == 2; })) ++wrong;
      }
    });
    CHECK(wrong == 0);
  }

  TEST_CASE("a thread computes while another's region has the pool") {
    Threads const two(2);
    std::atomic<bool> inside = false, done = false;
    std::thread other([&] {
      while (!inside) std::this_thread::yield();
      Index met = 0;
      parallel_for(10, 1e5, [&](Index begin, Index end) { met += end - begin; });
      done = met == 10;
      inside = false;
    });
    parallel_for(2, 1e5, [&](Index begin, Index) {
      if (begin != 0) return;
      inside = true;
      while (inside) std::this_thread::yield();
    });
    other.join();
    CHECK(done);
  }

  TEST_CASE("modes hold for their thread: recording, anomaly mode, names of parts") {
    std::atomic<int> wrong = 0;
    on_threads(3, [&](int i) {
      for (int round = 0; round < 100; ++round) {
        std::optional<NoGrad> unrecorded;
        std::optional<Anomaly> checked;
        if (i == 1) unrecorded.emplace();
        if (i == 2) checked.emplace();
        ModelPart const part(fmt::format("{} of {}", name_of(i), round % 7));
        Tensor const x = test::leaf({0, 1});
        std::string const said = test::refusal<NonFinite>([&] {
          if (log(x).requires_grad() == (i == 1)) ++wrong;
        });
        if (i == 2 ? !said.starts_with(fmt::format("log in thread 2 of {}", round % 7)) : !said.empty()) ++wrong;
      }
    });
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace heed
