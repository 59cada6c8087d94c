#include "models/corpus/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "kernels/engine/error.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBlock = 1 << 17;

/// The file as it is.
class PlainStream : public ByteStream {
 public:
  explicit PlainStream(fs::path path) : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) throw DataError(path_.string() + ": cannot open: " + std::strerror(errno));
    struct stat state {};
    if (::fstat(descriptor_, &state) == 0 && S_ISREG(state.st_mode)) return;
    ::close(descriptor_);
    throw DataError(path_.string() + ": is no regular file");  // a pipe would be waited for
  }
  ~PlainStream() override { ::close(descriptor_); }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  bool read(std::string& to) override {
    const size_t before = to.size();
    to.resize(before + kBlock);
    ssize_t count = 0;
    do count = ::read(descriptor_, to.data() + before, kBlock);
    while (count < 0 && errno == EINTR);
    if (count < 0) throw DataError(path_.string() + ": cannot read: " + std::strerror(errno));
    to.resize(before + static_cast<size_t>(count));
    consumed_ += count;
    return count > 0;
  }
  int64_t consumed() const override { return consumed_; }
  const fs::path& path() const { return path_; }

  [[noreturn]] void damaged(const std::string& what) const {
    throw DataError(path_.string() + ": damaged " + what + " (near byte " + std::to_string(consumed_) + " of the file)");
  }

 private:
  fs::path path_;
  int descriptor_;
  int64_t consumed_ = 0;
};

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(const fs::path& path) : file_(path) {
    if (inflateInit2(&inflate_, 15 + 16) != Z_OK) throw Error("zlib: cannot start");
  }
  ~GzipStream() override { inflateEnd(&inflate_); }

  bool read(std::string& to) override {
    const size_t before = to.size();
    while (to.size() == before) {
      if (inflate_.avail_in == 0 && !refill()) {
        if (inside_) file_.damaged("gzip data: it is cut short");
        return false;
      }
      inflate_block(to);
    }
    return true;
  }
  int64_t consumed() const override { return file_.consumed() - inflate_.avail_in; }

 private:
  bool refill() {
    input_.clear();
    file_.read(input_);
    inflate_.next_in = reinterpret_cast<Bytef*>(input_.data());
    inflate_.avail_in = static_cast<uInt>(input_.size());
    return !input_.empty();
  }

  void inflate_block(std::string& to) {
    const size_t before = to.size();
    to.resize(before + kBlock);
    inflate_.next_out = reinterpret_cast<Bytef*>(to.data() + before);
    inflate_.avail_out = kBlock;
    inside_ = true;
    const int result = inflate(&inflate_, Z_NO_FLUSH);
    to.resize(before + kBlock - inflate_.avail_out);
    if (result == Z_STREAM_END) {
      inside_ = false;  // another member may follow
      inflateReset(&inflate_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      file_.damaged(std::string("gzip data") + (inflate_.msg ? std::string(": ") + inflate_.msg : ""));
    }
  }

  PlainStream file_;
  std::string input_;
  z_stream inflate_{};
  bool inside_ = false;
};

class ZstdStream : public ByteStream {
 public:
  explicit ZstdStream(const fs::path& path) : file_(path), context_(ZSTD_createDStream()) {
    if (!context_) throw Error("zstd: cannot start");
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, 27);  // 128 MiB: what `zstd` itself takes without --long
  }
  ~ZstdStream() override { ZSTD_freeDStream(context_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  bool read(std::string& to) override {
    const size_t before = to.size();
    while (to.size() == before) {
      if (in_.pos == in_.size && !flushing_ && !refill()) {
        if (inside_) file_.damaged("zstd data: it is cut short");
        return false;
      }
      decompress_block(to);
    }
    return true;
  }
  int64_t consumed() const override { return file_.consumed() - static_cast<int64_t>(in_.size - in_.pos); }

 private:
  bool refill() {
    input_.clear();
    file_.read(input_);
    in_ = {input_.data(), input_.size(), 0};
    return !input_.empty();
  }

  void decompress_block(std::string& to) {
    const size_t before = to.size();
    to.resize(before + kBlock);
    ZSTD_outBuffer out{to.data() + before, kBlock, 0};
    const size_t result = ZSTD_decompressStream(context_, &out, &in_);
    to.resize(before + out.pos);
    if (ZSTD_isError(result)) file_.damaged(std::string("zstd data: ") + ZSTD_getErrorName(result));
    inside_ = result != 0;
    flushing_ = inside_ && out.pos == out.size;  // more may wait inside without any input
  }

  PlainStream file_;
  ZSTD_DStream* context_;
  std::string input_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool inside_ = false, flushing_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> ByteStream::open(const fs::path& path) {
  if (path.extension() == ".gz") return std::make_unique<GzipStream>(path);
  if (path.extension() == ".zst") return std::make_unique<ZstdStream>(path);
  return std::make_unique<PlainStream>(path);
}

std::string read_all(const fs::path& path, int64_t limit) {
  const auto stream = ByteStream::open(path);
  std::string content;
  while (stream->read(content))
    if (static_cast<int64_t>(content.size()) > limit) throw DataError(path.string() + ": more than " + std::to_string(limit) + " bytes");
  return content;
}

}  // namespace saccade
