#include "gui/presenters/document/recovery.h"

#include <QFileInfo>
#include <QLockFile>
#include <QUuid>
#include <algorithm>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/json/file.h"
#include "scenarios/json/output_file.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSnapshot = ".autosave";  // the document's path, a line feed, its text

fs::path lock_of(fs::path snapshot) { return snapshot.replace_extension(".lock"); }

bool is_left_behind(const fs::path& snapshot) {
  QLockFile lock(path_text(lock_of(snapshot)));
  lock.setStaleLockTime(0);  // only a dead owner makes it stale
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

void Recovery::keep(const fs::path& file, const std::string& text) {
  const fs::path whole = file.empty() ? file : fs::absolute(file);
  // A full disk must not stop the work; there is nothing better to do with the failure.
  static_cast<void>(write_file(snapshot_, whole.string() + "\n" + text));
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
    const std::size_t line = content ? content->find('\n') : std::string::npos;
    if (line == std::string::npos) continue;
    offers.push_back({path, content->substr(0, line), content->substr(line + 1),
                      QFileInfo(path_text(path)).lastModified()});
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
