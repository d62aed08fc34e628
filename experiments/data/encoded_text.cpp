#include "experiments/data/encoded_text.hpp"

#include <array>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// The beginning of a file.
struct Header {
  std::array<char, 8> format{'h', 'e', 'e', 'd', 't', 'o', 'k', '2'};
  std::uint64_t count = 0;
  std::array<char, 64> sha256{};  ///< of the key and the tokens that follow
  bool operator==(Header const&) const = default;

  static Header of(std::string const& key, std::span<std::int32_t const> tokens) {
    Header header;
    header.count = tokens.size();
    Sha256 content;
    content.update(std::as_bytes(std::span(key)));
    content.update(std::as_bytes(tokens));
    auto const hash = content.hex();
    std::memcpy(header.sha256.data(), hash.data(), header.sha256.size());
    return header;
  }
};

/// A whole file's content, as long as somebody holds it; null if it cannot be mapped.
std::shared_ptr<void const> mapped(fs::path const& path, std::size_t& size) {
  int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat state {};
  bool const regular = ::fstat(descriptor, &state) == 0 && S_ISREG(state.st_mode) && state.st_size > 0;
  size = regular ? static_cast<std::size_t>(state.st_size) : 0;
  void* const begin = regular ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  ::close(descriptor);
  if (begin == MAP_FAILED) return nullptr;
  return {begin, [size](void const* first) { ::munmap(const_cast<void*>(first), size); }};
}

}  // namespace

EncodedText::EncodedText(std::vector<std::int32_t> tokens) {
  auto const kept = std::make_shared<std::vector<std::int32_t> const>(std::move(tokens));
  owner_ = kept;
  tokens_ = *kept;
}

std::optional<EncodedText> EncodedText::read(fs::path const& path, std::string const& key) {
  std::size_t size = 0;
  auto const content = mapped(path, size);
  Header header;
  if (!content || size < sizeof header || (size - sizeof header) % sizeof(std::int32_t) != 0) return std::nullopt;
  std::memcpy(&header, content.get(), sizeof header);
  EncodedText text;
  text.owner_ = content;
  text.tokens_ = {reinterpret_cast<std::int32_t const*>(static_cast<std::byte const*>(content.get()) + sizeof header),
                  (size - sizeof header) / sizeof(std::int32_t)};
  return header == Header::of(key, text.tokens_) ? std::optional(text) : std::nullopt;
}

void EncodedText::write(fs::path const& path, std::string const& key) const {
  auto const header = Header::of(key, tokens_);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(std::as_bytes(tokens_));
  file.commit();
}

EncodedText kept_tokens(std::string const& key, std::function<std::vector<std::int32_t>()> const& encode) {
  auto const cache = cache_folder();
  auto const path = cache / "tokens" / key;
  if (!cache.empty())
    if (auto kept = EncodedText::read(path, key)) return *kept;
  EncodedText text(encode());
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  try {
    if (!cache.empty()) text.write(path, key);
  } catch (Error const&) {  // a full disk, a folder of somebody else: the tokens are there all the same
  }
  return text;
}

}  // namespace heed
