// Runs long work on a background thread, one piece at a time. A piece of work owns the values that
// it reads, and returns a function (`Done`) that shows its result; that function runs on the
// window's thread. If the work throws, `Failed` runs there instead. A new piece replaces the one
// that runs: the old one sees `stop` become true, and its result is dropped.
#pragma once

#include <QObject>
#include <QString>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace trainyard {

class Background {
 public:
  using Done = std::function<void()>;
  using Work = std::function<Done(const std::atomic<bool>& stop)>;
  using Failed = std::function<void(const QString& why)>;  // is called instead of Done

  // Requires: `receiver` owns this object and lives on the window's thread.
  Background(QObject& receiver, Failed failed) : receiver_(receiver), failed_(std::move(failed)) {}
  ~Background();  // stops and waits
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Asks running work to end, drops its result, and then starts this work.
  void start(Work work);
  // Asks the running work to end; what it has found by then is shown. Work that waits is dropped.
  void stop();
  bool busy() const { return thread_.joinable(); }

 private:
  void launch(Work work);
  // Runs on the background thread.
  Done done_or_failed(const Work& work, const std::atomic<bool>& stop) const;
  void finish(const Done& done);

  QObject& receiver_;
  Failed failed_;
  std::thread thread_;
  std::shared_ptr<std::atomic<bool>> stop_;
  std::optional<Work> next_;
};

}  // namespace trainyard
