#include "gui/presenters/document/recovery.h"

#include <QFileInfo>
#include <QLockFile>
#include <QUuid>
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/json/file.h"
#include "scenarios/json/output_file.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSnapshot = ".autosave";

fs::path lock_of(fs::path snapshot) { return snapshot.replace_extension(".lock"); }

// Line 1: the document's path. Line 2: the size of the saved text in bytes. Then the saved text
// and, without a separator, the edited text.
std::string snapshot_of(const fs::path& file, const std::string& saved, const std::string& text) {
  return file.string() + "\n" + std::to_string(saved.size()) + "\n" + saved + text;
}

std::optional<RecoveryOffer> offer_of(const std::string& content) {
  const std::size_t path_end = content.find('\n');
  if (path_end == std::string::npos) return std::nullopt;
  const char* const end = content.data() + content.size();
  std::size_t bytes = 0;
  const auto [number_end, error] = std::from_chars(content.data() + path_end + 1, end, bytes);
  if (error != std::errc() || number_end == end) {  // older format: line 1 and the edited text
    return RecoveryOffer{.file = content.substr(0, path_end), .text = content.substr(path_end + 1)};
  }
  const std::string_view rest(number_end + 1, end);
  if (bytes > rest.size()) return std::nullopt;
  return RecoveryOffer{.file = content.substr(0, path_end),
                       .saved = std::string(rest.substr(0, bytes)),
                       .text = std::string(rest.substr(bytes))};
}

bool is_left_behind(const fs::path& snapshot) {
  QLockFile lock(path_text(lock_of(snapshot)));
  lock.setStaleLockTime(0);  // a lock is stale only if its owner is dead, whatever its age
  return lock.tryLock(0);
}

}  // namespace

Recovery::Recovery(fs::path folder)
    : folder_(std::move(folder)),
      snapshot_(folder_ /
                (QUuid::createUuid().toString(QUuid::WithoutBraces).toStdString() + kSnapshot)) {
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  lock_ = std::make_unique<QLockFile>(path_text(lock_of(snapshot_)));
  lock_->setStaleLockTime(0);
  lock_->tryLock(0);
}

Recovery::~Recovery() { discard(); }

void Recovery::keep(const fs::path& file, const std::string& saved, const std::string& text) {
  const fs::path whole = file.empty() ? file : fs::absolute(file);
  // Failure to write, on a full disk for example, must not interrupt the user, so it is ignored.
  static_cast<void>(write_file(snapshot_, snapshot_of(whole, saved, text)));
}

void Recovery::discard() {
  std::error_code ignored;
  fs::remove(snapshot_, ignored);
}

std::vector<RecoveryOffer> Recovery::offers() const {
  std::vector<RecoveryOffer> offers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const fs::path& path = entry.path();
    if (path.extension() != kSnapshot || path == snapshot_ || !is_left_behind(path)) continue;
    const auto content = read_file(path, 2 * kLargestDocument);
    std::optional<RecoveryOffer> offer = content ? offer_of(*content) : std::nullopt;
    if (!offer) continue;
    offer->snapshot = path;
    offer->time = QFileInfo(path_text(path)).lastModified();
    offers.push_back(*std::move(offer));
  }
  std::ranges::sort(offers, std::greater<>(), &RecoveryOffer::time);
  return offers;
}

void Recovery::forget(const RecoveryOffer& offer) {
  std::error_code ignored;
  fs::remove(offer.snapshot, ignored);
  fs::remove(lock_of(offer.snapshot), ignored);
}

}  // namespace trainyard
