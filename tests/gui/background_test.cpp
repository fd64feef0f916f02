// Work that throws: the window is told why, and goes on.
#include "gui/presenters/background.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <vector>

#include "tests/gui/application.h"

namespace trainyard {
namespace {

class BackgroundWork : public testing::Test {
 protected:
  // Runs the work and returns what the window shows in the end.
  QString shown(Background::Work work) {
    shown_.clear();
    background_.start(std::move(work));
    EXPECT_TRUE(wait_until([this] { return !background_.busy(); }));
    EXPECT_EQ(shown_.size(), 1u);
    return shown_.empty() ? QString() : shown_.back();
  }
  Background::Done done() {
    return [this] { shown_.push_back(QStringLiteral("done")); };
  }

  QObject receiver_;
  std::vector<QString> shown_;
  Background background_{receiver_, [this](const QString& why) { shown_.push_back(why); }};
};

TEST_F(BackgroundWork, SaysWhyItFailedAndGoesOn) {
  EXPECT_EQ(shown([](const std::atomic<bool>&) -> Background::Done { throw std::bad_alloc(); }),
            QStringLiteral("The answer needs more memory than this machine gives."));
  EXPECT_EQ(shown([](const std::atomic<bool>&) -> Background::Done {
              throw std::runtime_error("no such day");
            }),
            QStringLiteral("no such day"));
  EXPECT_EQ(shown([this](const std::atomic<bool>&) { return done(); }), QStringLiteral("done"));
}

// If work that was replaced fails, nobody is told why.
TEST_F(BackgroundWork, GivesWayWhereItFails) {
  std::atomic<bool> begun = false;
  background_.start([&](const std::atomic<bool>& stop) -> Background::Done {
    begun = true;
    while (!stop) {
    }
    throw std::bad_alloc();
  });
  while (!begun) {
  }
  EXPECT_EQ(shown([this](const std::atomic<bool>&) { return done(); }), QStringLiteral("done"));
}

}  // namespace
}  // namespace trainyard
