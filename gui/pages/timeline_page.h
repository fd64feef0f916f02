// Shows the simulated step or a saved trace: options and search above, then the Gantt chart, and
// beside it the longest operations and details of the slice that was pointed at.
#pragma once

#include <QWidget>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "gui/presenters/background.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSplitter;

namespace trainyard {

class Gantt;
class Explore;
class ScenarioDocument;
class StepPlay;
enum class Fold;
enum class NetworkGrain;

class TimelinePage : public QWidget {
  Q_OBJECT
 public:
  TimelinePage(ScenarioDocument& document, Explore& explore, StepPlay& play,
               QWidget* parent = nullptr);

  Gantt& gantt() { return *gantt_; }
  // How a step is played that is simulated next.
  NetworkGrain grain() const;
  Fold fold() const;
  void play_every_rank();
  void open(const std::filesystem::path& trace);
  // Exports on a background thread, in the format of the ending: .png, .svg or .json (a trace for
  // Perfetto). said() tells how it went.
  void export_to(const std::filesystem::path& file);

 Q_SIGNALS:
  void simulate_asked();
  void said(const QString& message);

 private:
  QWidget* make_bar();
  QWidget* make_side();
  void show_started();
  void show_step();
  void show_summary();
  QString age_of_step() const;
  void show_details(const QString& details);
  void find_next();
  void show_found(std::optional<std::uint32_t> slice, const QString& text);
  void choose_trace();
  void choose_export();
  void end_export(const QString& message);

  ScenarioDocument& document_;
  Explore& explore_;
  StepPlay& play_;
  Gantt* gantt_;
  QComboBox *network_, *ranks_;
  QPushButton *simulate_, *cancel_, *open_, *export_;
  QLineEdit* search_;
  QCheckBox* critical_;
  QLabel *summary_, *details_, *shares_title_;
  QListWidget* shares_;
  QSplitter* splitter_;
  Background finding_, exporting_;
};

}  // namespace trainyard
