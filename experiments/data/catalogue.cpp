#include "experiments/data/catalogue.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/reading.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

CatalogueFile read_catalogue_file(Yaml::Entry const& part) {
  CatalogueFile file;
  file.part = part.key;
  auto const entries = entries_of(part.value, "a file", {"path", "url", "sha256", "bytes"});
  for (auto const& [key, location, value] : entries) {
    if (key == "path") file.path = text_value(value, key);
    if (key == "url") file.url = text_value(value, key);
    if (key == "sha256") file.sha256 = text_value(value, key);
    if (key == "bytes") file.bytes = static_cast<Index>(number_value(value, key, 1, 1e12));
    if (key == "path" && (fs::path(file.path).is_absolute() || file.path.find("..") != std::string::npos))
      refuse(value.location, "path must stay inside the data folder");
    if (key == "sha256" && (file.sha256.size() != 64 || file.sha256.find_first_not_of("0123456789abcdef") != std::string::npos))
      refuse(value.location, "sha256 must be 64 hexadecimal digits");
  }
  if (file.path.empty() || file.url.empty() || file.sha256.empty() || file.bytes == 0)
    refuse(part.location, fmt::format("'{}' needs path, url, sha256 and bytes", part.key));
  return file;
}

CatalogueEntry read_entry(Yaml::Entry const& named) {
  CatalogueEntry result;
  result.name = named.key;
  auto const entries = entries_of(named.value, "'" + named.key + "'", {"about", "licence", "text", "train", "validation", "test"});
  for (auto const& entry : entries) {
    if (entry.key == "about")
      result.about = text_value(entry.value, "about");
    else if (entry.key == "licence")
      result.licence = text_value(entry.value, "licence");
    else
      result.files.push_back(read_catalogue_file(entry));
  }
  if (result.about.empty() || result.licence.empty()) refuse(named.location, fmt::format("'{}' needs about and licence", named.key));
  bool const whole = result.part("text") && result.files.size() == 1;
  bool const split = result.part("train") && result.part("validation") && !result.part("text");
  if (!whole && !split)
    refuse(named.location, fmt::format("'{}' needs either the file text, or train and validation (and test)", named.key));
  return result;
}

/// The state of libcurl's callbacks. They are called from C and must not throw: an error of writing is kept here until the transfer ends.
struct HttpTransfer {
  AtomicFile file;
  std::string name;
  Index expected;
  bool show;
  Sha256 hash{};
  Index received = 0;
  std::exception_ptr failure{};
};

std::size_t receive(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<HttpTransfer*>(user);
  std::span<std::byte const> const bytes(reinterpret_cast<std::byte const*>(data), size * count);
  transfer.received += static_cast<Index>(bytes.size());
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
  if (auto const code = ::curl_easy_setopt(curl, option, value); code != CURLE_OK)
    throw Error(fmt::format("libcurl refuses option {}: {}", static_cast<int>(option), ::curl_easy_strerror(code)));
}

/// Runs the transfer. Throws Error that says what went wrong, or the error of writing.
void perform(std::string const& url, HttpTransfer& transfer) {
  std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> const curl(::curl_easy_init(), &::curl_easy_cleanup);
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
  auto const code = ::curl_easy_perform(curl.get());
  if (transfer.show) fmt::print(stderr, "\n");
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  if (transfer.received > transfer.expected) throw Error(fmt::format("more than the {} bytes that it should have", transfer.expected));
  if (code != CURLE_OK) throw Error(*reason ? reason : ::curl_easy_strerror(code));
}

}  // namespace

CatalogueFile const* CatalogueEntry::part(std::string_view wanted) const {
  auto const found = std::ranges::find(files, wanted, &CatalogueFile::part);
  return found == files.end() ? nullptr : &*found;
}

std::vector<CatalogueEntry> read_catalogue(std::string_view text, std::string const& path) {
  auto const yaml = parse_data(text, path);
  return mapped(entries_of(yaml, "the catalogue"), read_entry);
}

std::vector<CatalogueEntry> const& catalogue() {
  static auto const entries = read_catalogue(read_text(shipped("catalogue.yaml")), shipped("catalogue.yaml").string());
  return entries;
}

CatalogueEntry const& catalogue_entry(std::vector<CatalogueEntry> const& entries, std::string const& name) {
  auto const found = std::ranges::find(entries, name, &CatalogueEntry::name);
  if (found != entries.end()) return *found;
  throw Error(fmt::format("data.name: '{}' is not in the catalogue{}", name, did_you_mean(name, names_of(entries))));
}

fs::path obtain(CatalogueFile const& file, DataContext const& context) {
  auto const data = data_folder(context), cache = cache_folder();
  auto const given = data / file.path, cached = cache / file.path;
  if (data != cache && is_there(given)) {
    if (auto const hash = sha256_of_file(given); hash != file.sha256)
      throw FileError(fmt::format("{}: has SHA-256 {}, but the catalogue says {} (data.path uses a file of your own)", given.string(), hash,
                                  file.sha256));
    return given;
  }
  if (cache.empty()) throw Error("neither XDG_CACHE_HOME nor HOME is set: no folder to keep fetched data in (--data DIR names one)");
  if (is_there(cached) && sha256_of_file(cached) == file.sha256) return cached;
  try {
    download(file.url, cached, file.sha256, file.bytes, context.quiet);
  } catch (FileError const& error) {
    throw FileError(
        fmt::format("{}; put the file there by hand, or at {} below a folder that --data or HEED_DATA names", error.what(), file.path));
  }
  return cached;
}

void download(std::string const& url, fs::path const& target, std::string const& sha256, Index bytes, bool quiet) {
  auto const fail = [&](std::string const& why) {
    throw FileError(fmt::format("{}: cannot be fetched from {}: {}", target.string(), url, why));
  };
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) fail(fmt::format("{}: {}", target.parent_path().string(), error.message()));

  HttpTransfer transfer{AtomicFile(target), target.filename().string(), bytes, !quiet && ::isatty(STDERR_FILENO) != 0};
  try {
    perform(url, transfer);
  } catch (Error const& why) {
    if (transfer.failure) throw;
    fail(why.what());
  }
  if (auto const got = transfer.hash.hex(); got != sha256)
    fail(fmt::format("{} bytes with SHA-256 {} arrived instead of {} bytes with {}", transfer.received, got, bytes, sha256));
  transfer.file.commit();
}

}  // namespace heed
