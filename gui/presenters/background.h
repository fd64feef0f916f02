// Long work beside the window: one piece at a time on a thread of its own, on values it owns. What
// it found is shown by a function that runs on the window's thread; so is why it failed, where it
// threw. A new piece replaces the one that runs; the work sees that it is asked to end.
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
  using Failed = std::function<void(const QString& why)>;  // in the place of Done

  // `receiver` owns this and lives on the window's thread.
  Background(QObject& receiver, Failed failed) : receiver_(receiver), failed_(std::move(failed)) {}
  ~Background();  // stops and waits
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // What runs is asked to end and its result dropped.
  void start(Work work);
  // What runs is asked to end, and what it has by then is shown; what waits is dropped.
  void stop();
  bool busy() const { return thread_.joinable(); }

 private:
  void launch(Work work);
  // On the work's thread.
  Done done_or_failed(const Work& work, const std::atomic<bool>& stop) const;
  void finish(const Done& done);

  QObject& receiver_;
  Failed failed_;
  std::thread thread_;
  std::shared_ptr<std::atomic<bool>> stop_;
  std::optional<Work> next_;
};

}  // namespace trainyard
