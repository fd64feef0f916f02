// Autosave. While a document has unsaved edits, a snapshot of its text lies in a folder of the
// user; it is removed when the document is saved or closed. A snapshot is written whole and renamed
// into place. If the program dies, the next one offers the snapshot. A lock file beside each
// snapshot tells whether the program that wrote it still runs.
#pragma once

#include <QDateTime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

class QLockFile;

namespace trainyard {

struct RecoveryOffer {
  std::filesystem::path snapshot;
  std::filesystem::path file;  // the document's file; empty: it had none
  std::string saved;           // the text of that file when it was last read or written
  std::string text;            // the edited text
  QDateTime time;
};

class Recovery {
 public:
  explicit Recovery(std::filesystem::path folder);
  ~Recovery();  // removes its own snapshot
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  void keep(const std::filesystem::path& file, const std::string& saved, const std::string& text);
  void discard();

  // The snapshots of programs that have died, newest first.
  std::vector<RecoveryOffer> offers() const;
  void forget(const RecoveryOffer& offer);

 private:
  std::filesystem::path folder_, snapshot_;
  std::unique_ptr<QLockFile> lock_;
};

}  // namespace trainyard
