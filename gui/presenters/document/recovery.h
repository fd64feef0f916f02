// Autosave: a snapshot of the edited text in a folder of the user's, renamed into place whole, kept
// until the document is saved or closed. What a program that died left behind is offered by the
// next one; a lock tells it from that of one that still runs.
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
  std::filesystem::path file;  // of the document; empty: it had none
  std::string saved;           // that the file had when it was last read or written
  std::string text;
  QDateTime time;
};

class Recovery {
 public:
  explicit Recovery(std::filesystem::path folder);
  ~Recovery();  // takes its own snapshot away
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  void keep(const std::filesystem::path& file, const std::string& saved, const std::string& text);
  void discard();

  // Of programs that have died, newest first.
  std::vector<RecoveryOffer> offers() const;
  void forget(const RecoveryOffer& offer);

 private:
  std::filesystem::path folder_, snapshot_;
  std::unique_ptr<QLockFile> lock_;
};

}  // namespace trainyard
