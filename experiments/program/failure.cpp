#include "experiments/program/failure.hpp"

#include <cstdio>
#include <new>

#include <fmt/format.h>

#include "experiments/config/yaml.hpp"

namespace heed {

Exit fail(Exit code, std::string message) {
  for (auto& c : message)
    if (c == '\n' || c == '\r') c = ' ';
  std::fputs(fmt::format("heed: {}\n", message).c_str(), stderr);  // that it cannot be written is no reason to fail otherwise
  return code;
}

Exit guarded(std::function<Exit()> const& f) try { return f(); } catch (ConfigError const& error) {
  return fail(Exit::usage, error.what());
} catch (FolderError const& error) {
  return fail(Exit::usage, error.what());
} catch (FileError const& error) {
  return fail(Exit::data, error.what());
} catch (TrainingError const& error) {
  return fail(Exit::failed, error.what());
} catch (Interrupted const& error) {
  return fail(Exit::interrupted, error.what());
} catch (std::bad_alloc const&) {
  return fail(Exit::other, "out of memory; a smaller train.batch, model.context or model.width needs less");
} catch (std::exception const& error) {
  return fail(Exit::other, error.what());
}

}  // namespace heed
