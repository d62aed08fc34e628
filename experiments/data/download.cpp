#include "experiments/data/download.hpp"

#include <cstdio>
#include <exception>
#include <memory>
#include <type_traits>

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

#if defined(__APPLE__)
constexpr char const* curl_file = "libcurl.4.dylib";
#else
constexpr char const* curl_file = "libcurl.so.4";
#endif

/// libcurl, loaded by the first transfer: it brings some thirty libraries along, a quarter of the time that the program takes to start.
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_strerror) easy_strerror;

  /// Throws Error if there is none.
  Curl() {
    void* const library = ::dlopen(curl_file, RTLD_NOW);
    auto const find = [&](auto& function, char const* name) {
      void* const symbol = library != nullptr ? ::dlsym(library, name) : nullptr;
      if (symbol == nullptr) throw Error(fmt::format("libcurl cannot be loaded: {}", ::dlerror()));
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    find(global_init, "curl_global_init");
    find(easy_init, "curl_easy_init");
    find(easy_cleanup, "curl_easy_cleanup");
    find(easy_setopt, "curl_easy_setopt");
    find(easy_perform, "curl_easy_perform");
    find(easy_strerror, "curl_easy_strerror");
    global_init(CURL_GLOBAL_DEFAULT);
  }
};

Curl const& libcurl() {
  static Curl const loaded;
  return loaded;
}

/// What libcurl's callbacks see. They are called from C, so that the file cannot be written waits here until the transfer is over.
struct HttpTransfer {
  AtomicFile file;
  std::string name;
  std::int64_t expected;
  bool show;
  Sha256 hash{};
  std::int64_t received = 0;
  std::exception_ptr failure{};
};

std::size_t receive(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<HttpTransfer*>(user);
  std::span<std::byte const> const bytes(reinterpret_cast<std::byte const*>(data), size * count);
  transfer.received += static_cast<std::int64_t>(bytes.size());
  if (transfer.received > transfer.expected) return 0;  // stops the transfer
  try {
    transfer.file.write(bytes);
    transfer.hash.update(bytes);
  } catch (...) {
    transfer.failure = std::current_exception();
    return 0;
  }
  return bytes.size();
}

int show_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto const& transfer = *static_cast<HttpTransfer const*>(user);
  if (!transfer.show) return 0;
  double const part = static_cast<double>(transfer.received) / static_cast<double>(transfer.expected);
  constexpr int width = 30;
  auto const done = static_cast<int>(part * width);
  fmt::print(stderr, "\rfetching {} [{:=<{}}{: <{}}] {:3.0f} % of {:.1f} MB", transfer.name, "", done, "", width - done, 100 * part,
             static_cast<double>(transfer.expected) * 1e-6);
  std::fflush(stderr);
  return 0;
}

template <class Value>
void set(CURL* curl, CURLoption option, Value value) {
  if (auto const code = libcurl().easy_setopt(curl, option, value); code != CURLE_OK)
    throw Error(fmt::format("libcurl refuses option {}: {}", static_cast<int>(option), libcurl().easy_strerror(code)));
}

/// Runs the transfer; "" or what went wrong.
std::string perform(std::string const& url, HttpTransfer& transfer) {
  std::unique_ptr<CURL, decltype(Curl::easy_cleanup)> const curl(libcurl().easy_init(), libcurl().easy_cleanup);
  if (!curl) throw Error("libcurl does not start");
  char reason[CURL_ERROR_SIZE] = "";
  set(curl.get(), CURLOPT_ERRORBUFFER, static_cast<char*>(reason));
  set(curl.get(), CURLOPT_URL, url.c_str());
  set(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https,file");
  set(curl.get(), CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  set(curl.get(), CURLOPT_MAXREDIRS, 10L);
  set(curl.get(), CURLOPT_FAILONERROR, 1L);
  set(curl.get(), CURLOPT_NOSIGNAL, 1L);
  set(curl.get(), CURLOPT_CONNECTTIMEOUT, 20L);
  set(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes a second, for this many seconds: then it is stuck
  set(curl.get(), CURLOPT_LOW_SPEED_TIME, 30L);
  set(curl.get(), CURLOPT_WRITEFUNCTION, &receive);
  set(curl.get(), CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(curl.get(), CURLOPT_NOPROGRESS, 0L);
  set(curl.get(), CURLOPT_XFERINFOFUNCTION, &show_progress);
  set(curl.get(), CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  auto const code = libcurl().easy_perform(curl.get());
  if (transfer.show) fmt::print(stderr, "\n");
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  if (transfer.received > transfer.expected) return fmt::format("more than the {} bytes that it should have", transfer.expected);
  return code == CURLE_OK ? "" : *reason ? reason : libcurl().easy_strerror(code);
}

}  // namespace

void download(std::string const& url, std::filesystem::path const& target, std::string const& sha256, std::int64_t bytes, bool quiet) {
  auto const fail = [&](std::string const& why) {
    throw FileError(fmt::format("{}: cannot be fetched from {}: {}", target.string(), url, why));
  };
  std::error_code error;
  std::filesystem::create_directories(target.parent_path(), error);
  if (error) fail(fmt::format("{}: {}", target.parent_path().string(), error.message()));

  HttpTransfer transfer{AtomicFile(target), target.filename().string(), bytes, !quiet && ::isatty(STDERR_FILENO) != 0};
  try {
    if (auto const why = perform(url, transfer); !why.empty()) fail(why);
  } catch (FileError const&) {
    throw;
  } catch (Error const& why) {
    if (transfer.failure) throw;
    fail(why.what());
  }
  if (auto const got = transfer.hash.hex(); got != sha256)
    fail(fmt::format("{} bytes with SHA-256 {} arrived instead of {} bytes with {}", transfer.received, got, bytes, sha256));
  transfer.file.commit();
}

}  // namespace heed
