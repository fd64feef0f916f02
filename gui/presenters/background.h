// Long work beside the window: one piece at a time on a thread of its own, on values it owns. What
// it found is shown by a function that runs on the window's thread. A new piece replaces the one
// that runs; the work sees that it is asked to end.
#pragma once

#include <QObject>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace trainyard {

class Background {
 public:
  using Done = std::function<void()>;
  using Work = std::function<Done(const std::atomic<bool>& stop)>;

  // `receiver` owns this and lives on the window's thread.
  explicit Background(QObject& receiver) : receiver_(receiver) {}
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
  void finish(const Done& done);

  QObject& receiver_;
  std::thread thread_;
  std::shared_ptr<std::atomic<bool>> stop_;
  std::optional<Work> next_;
};

}  // namespace trainyard
