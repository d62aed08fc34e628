/* A training step of llm.c (https://github.com/karpathy/llm.c) at heed's sizes, for compare.sh. It is compiled with a checkout of llm.c in
   the include path, whose train_gpt2.c it takes as it is.

     llmc SIZE STEPS     after one step that is not counted; threads: OMP_NUM_THREADS. Prints one object of JSON. */
#define TESTING /* no main() of its own */
#include "train_gpt2.c"

static struct size {
  char const* name;
  int layers, heads, width, context, batch;
} const sizes[] = {{"tiny", 2, 2, 64, 32, 16}, {"nano", 4, 4, 128, 64, 12}, {"small", 6, 6, 384, 256, 8}};
enum { vocabulary = 65 };

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int ascending(void const* a, void const* b) {
  double const x = *(double const*)a, y = *(double const*)b;
  return (x > y) - (x < y);
}

/* A model with small random weights: train_gpt2.c reads its own from a checkpoint only. */
static GPT2 model_of(struct size const* size) {
  GPT2 model;
  memset(&model, 0, sizeof model);
  GPT2Config const config = {.max_seq_len = size->context,
                             .vocab_size = vocabulary,
                             .padded_vocab_size = vocabulary,
                             .num_layers = size->layers,
                             .num_heads = size->heads,
                             .channels = size->width};
  model.config = config;
  fill_in_parameter_sizes(model.param_sizes, config);
  for (int i = 0; i < NUM_PARAMETER_TENSORS; ++i) model.num_parameters += model.param_sizes[i];
  model.params_memory = malloc_and_point_parameters(&model.params, model.param_sizes);
  for (size_t i = 0; i < model.num_parameters; ++i) model.params_memory[i] = 0.04F * ((float)rand() / (float)RAND_MAX - 0.5F);
  for (size_t i = 0; i < model.param_sizes[2]; ++i) model.params.ln1w[i] = model.params.ln2w[i] = 1;
  for (size_t i = 0; i < model.param_sizes[14]; ++i) model.params.lnfw[i] = 1;
  return model;
}

int main(int count, char** arguments) {
  struct size const* size = NULL;
  for (int i = 0; i < 3 && count == 3; ++i) {
    if (strcmp(sizes[i].name, arguments[1]) == 0) size = sizes + i;
  }
  int const steps = count == 3 ? atoi(arguments[2]) : 0;
  if (size == NULL || steps < 1) {
    fprintf(stderr, "usage: llmc tiny|nano|small STEPS\n");
    return 2;
  }
  GPT2 model = model_of(size);
  int const tokens = size->batch * size->context;
  int* const inputs = malloc((size_t)tokens * sizeof(int));
  int* const targets = malloc((size_t)tokens * sizeof(int));
  double* const times = malloc((size_t)steps * sizeof(double));
  for (int i = 0; i < tokens; ++i) inputs[i] = rand() % vocabulary, targets[i] = rand() % vocabulary;
  FILE* const out = fdopen(dup(STDOUT_FILENO), "w"); /* train_gpt2.c prints of its own */
  if (out == NULL || freopen("/dev/null", "w", stdout) == NULL) return 1;
  for (int step = -1; step < steps; ++step) {
    double const begin = milliseconds();
    gpt2_forward(&model, inputs, targets, (size_t)size->batch, (size_t)size->context);
    gpt2_zero_grad(&model);
    gpt2_backward(&model);
    gpt2_update(&model, 1e-3F, 0.9F, 0.999F, 1e-8F, 0.0F, step + 2);
    if (step >= 0) times[step] = milliseconds() - begin;
  }
  qsort(times, (size_t)steps, sizeof(double), ascending);
  fprintf(out, "{\"what\": \"train\", \"size\": \"%s\", \"median_ms\": %.3f, \"min_ms\": %.3f, \"max_ms\": %.3f, \"loss\": %.4f}\n",
          size->name, times[steps / 2], times[0], times[steps - 1], model.mean_loss);
  free(inputs), free(targets), free(times);
  gpt2_free(&model);
  return fclose(out);
}
