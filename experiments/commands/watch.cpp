#include "experiments/ablation/ablation.hpp"
#include "experiments/program/command.hpp"

namespace heed {

namespace {

void declare_watch(CLI::App& app, WatchOptions& options) {
  add_argument(app, "FOLDER", "an ablation's folder, or its name in the output folder", options.folder);
  add_flag(app, "--once", options.once, "print the state once");
  add_number<Index>(app, "--every", options.every, 1, 3600, "seconds between looks (default: 5)");
}

Declared<Command> const watch_command{{.order = 4,
                                       .name = "watch",
                                       .usage = "FOLDER",
                                       .help = "show how far an ablation is that runs elsewhere, from its files alone",
                                       .footer = "example:\n  heed watch runs/attention",
                                       .add = with_options<WatchOptions>(declare_watch, watch_ablation)}};

}  // namespace

}  // namespace heed
