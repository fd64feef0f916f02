#include "gui/presenters/background.h"

#include <QMetaObject>
#include <exception>
#include <new>
#include <utility>

namespace trainyard {

Background::~Background() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Background::start(Work work) {
  if (!busy()) {
    launch(std::move(work));
    return;
  }
  stop();
  next_ = std::move(work);
}

void Background::stop() {
  next_.reset();
  if (stop_) *stop_ = true;
}

void Background::launch(Work work) {
  stop_ = std::make_shared<std::atomic<bool>>(false);
  thread_ = std::thread([this, stop = stop_, work = std::move(work)] {
    Done done = done_or_failed(work, *stop);
    const auto show = [this, done = std::move(done)] { finish(done); };
    QMetaObject::invokeMethod(&receiver_, show, Qt::QueuedConnection);
  });
}

Background::Done Background::done_or_failed(const Work& work, const std::atomic<bool>& stop) const {
  QString why;
  try {
    return work(stop);
  } catch (const std::bad_alloc&) {
    why = QObject::tr("The answer needs more memory than this machine gives.");
  } catch (const std::exception& error) {
    why = QString::fromUtf8(error.what());
  }
  return [this, why] { failed_(why); };
}

void Background::finish(const Done& done) {
  thread_.join();
  if (next_) {
    launch(*std::exchange(next_, std::nullopt));
  } else if (done) {
    done();
  }
}

}  // namespace trainyard
