#include "gui/pages/timeline_page.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QPixmap>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/charts/colours.h"
#include "gui/charts/gantt.h"
#include "gui/pages/save_dialog.h"
#include "gui/pages/search_line.h"
#include "gui/presenters/answer.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/text.h"
#include "gui/presenters/timeline/step_play.h"
#include "gui/presenters/timeline/timeline_scene.h"
#include "scenarios/json/output_file.h"
#include "scenarios/write/trace.h"
#include "simulator/step.h"

namespace trainyard {

TimelinePage::TimelinePage(ScenarioDocument& document, Explore& explore, StepPlay& play,
                           QWidget* parent)
    : QWidget(parent),
      document_(document),
      explore_(explore),
      play_(play),
      gantt_(new Gantt),
      network_(new QComboBox),
      ranks_(new QComboBox),
      simulate_(new QPushButton(tr("Simulate"))),
      cancel_(new QPushButton(tr("Cancel"))),
      open_(new QPushButton(tr("Open a trace …"))),
      export_(new QPushButton(tr("Export …"))),
      search_(new SearchLine(tr("Search operations (Enter: next)"), tr("Search operations"))),
      critical_(new QCheckBox(tr("Critical path"))),
      summary_(new QLabel),
      details_(new QLabel),
      shares_title_(new QLabel),
      shares_(new QListWidget),
      splitter_(new QSplitter),
      finding_(*this, [this](const QString& why) { Q_EMIT said(why); }),
      exporting_(*this, [this](const QString& why) { end_export(why); }) {
  splitter_->setObjectName(QStringLiteral("timeline"));
  splitter_->addWidget(gantt_);
  splitter_->addWidget(make_side());
  splitter_->setStretchFactor(0, 1);
  splitter_->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(make_bar());
  layout->addWidget(summary_);
  layout->addWidget(splitter_, 1);
  summary_->setWordWrap(true);
  summary_->setObjectName(QStringLiteral("summary"));
  connect(&play_, &StepPlay::started, this, &TimelinePage::show_started);
  connect(&play_, &StepPlay::progressed, this, [this](double fraction) {
    summary_->setText(tr("Working … %1").arg(percent_text(fraction)));
  });
  connect(&play_, &StepPlay::finished, this, &TimelinePage::show_step);
  connect(&document_, &ScenarioDocument::changed, this, &TimelinePage::show_summary);
  connect(&explore_, &Explore::changed, this, &TimelinePage::show_summary);
  connect(gantt_, &Gantt::pointed, this, &TimelinePage::show_details);
  show_step();
}

QWidget* TimelinePage::make_bar() {
  network_->addItems({tr("Collectives as flows"), tr("Messages as flows")});
  network_->setAccessibleName(tr("Grain of the network"));
  ranks_->addItems({tr("A rank for each stage"), tr("Every rank")});
  ranks_->setAccessibleName(tr("Ranks that are played"));
  for (QComboBox* choice : {network_, ranks_}) {
    connect(choice, &QComboBox::currentIndexChanged, this, &TimelinePage::show_summary);
  }
  simulate_->setObjectName(QStringLiteral("simulate"));
  export_->setObjectName(QStringLiteral("export_timeline"));
  // In a narrow window the other controls would leave it room for a single letter.
  search_->setMinimumWidth(search_->fontMetrics().averageCharWidth() * 18);
  auto* all = new QPushButton(tr("Show all"));
  connect(simulate_, &QPushButton::clicked, this, &TimelinePage::simulate_asked);
  cancel_->setObjectName(QStringLiteral("cancel_simulation"));
  connect(cancel_, &QPushButton::clicked, this, [this] { play_.cancel(); });
  connect(open_, &QPushButton::clicked, this, &TimelinePage::choose_trace);
  connect(export_, &QPushButton::clicked, this, &TimelinePage::choose_export);
  connect(all, &QPushButton::clicked, gantt_, &Gantt::show_all);
  connect(search_, &QLineEdit::returnPressed, this, &TimelinePage::find_next);
  connect(critical_, &QCheckBox::toggled, gantt_, &Gantt::highlight_critical);
  auto* bar = new QWidget;
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  for (QWidget* widget :
       std::initializer_list<QWidget*>{network_, ranks_, simulate_, cancel_, open_}) {
    row->addWidget(widget);
  }
  row->addWidget(search_, 1);
  for (QWidget* widget : std::initializer_list<QWidget*>{critical_, all, export_}) {
    row->addWidget(widget);
  }
  return bar;
}

QWidget* TimelinePage::make_side() {
  shares_title_->setBuddy(shares_);
  shares_->setWordWrap(true);
  shares_->setAlternatingRowColors(true);
  details_->setWordWrap(true);
  details_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  details_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  details_->setMinimumHeight(9 * details_->fontMetrics().lineSpacing());
  auto* side = new QWidget;
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(shares_title_);
  column->addWidget(shares_, 1);
  column->addWidget(details_);
  side->setMinimumWidth(side->fontMetrics().averageCharWidth() * 34);
  return side;
}

NetworkGrain TimelinePage::grain() const {
  return network_->currentIndex() == 1 ? NetworkGrain::message : NetworkGrain::collective;
}
Fold TimelinePage::fold() const {
  return ranks_->currentIndex() == 1 ? Fold::off : Fold::automatic;
}
void TimelinePage::play_every_rank() { ranks_->setCurrentIndex(1); }
void TimelinePage::open(const std::filesystem::path& trace) { play_.open(trace); }

// Disabling a button with the focus would move it to the next control, which takes the keys of the
// chart as text. So the focus goes to Cancel, also if the page is not shown yet.
void TimelinePage::show_started() {
  cancel_->setEnabled(true);
  if (!isVisible() || simulate_->hasFocus() || open_->hasFocus()) cancel_->setFocus();
  simulate_->setEnabled(false);
  open_->setEnabled(false);
  summary_->setText(tr("Working …"));
}

void TimelinePage::show_step() {
  simulate_->setEnabled(true);
  open_->setEnabled(true);
  if (focusWidget() == cancel_) gantt_->setFocus();
  cancel_->setEnabled(false);
  const auto& step = play_.step();
  const bool is_simulated = step && step->simulation;
  critical_->setEnabled(is_simulated);
  if (!is_simulated) critical_->setChecked(false);
  shares_title_->setText(step ? step->shares_title : tr("Critical path by operation"));
  shares_->setAccessibleName(shares_title_->text());
  export_->setEnabled(step != nullptr && !exporting_.busy());
  gantt_->set_scene(step ? step->scene : nullptr);
  shares_->clear();
  show_details({});
  show_summary();
  if (!step) return;
  for (const QString& share : step->shares) shares_->addItem(unbroken(share));
}

void TimelinePage::show_summary() {
  if (play_.busy()) return;  // the line shows progress then
  const auto& step = play_.step();
  QPalette colours = palette();
  if (step && step->misfits) colours.setColor(QPalette::WindowText, alarm_colour(palette()));
  summary_->setPalette(colours);
  if (step) {
    const QString why = play_.problem();
    summary_->setText((why.isEmpty() ? why : tr("%1 Below is the one before. ").arg(why)) +
                      age_of_step() + step->summary);
  } else if (!play_.problem().isEmpty()) {
    summary_->setText(play_.problem());
  } else {
    summary_->setText(
        tr("The simulator plays the plan of the Explore page; a trace of a run or a simulation can "
           "be opened."));
  }
}

QString TimelinePage::age_of_step() const {
  const PlayedStep& step = *play_.step();
  if (step.question == nullptr) return {};
  QString age = document_.age_of(step.question);
  if (age.isEmpty()) age = explore_.age_of(step.plan);
  const bool is_as_chosen = step.grain == grain() && step.fold == fold();
  return age.isEmpty() && !is_as_chosen ? tr("Played otherwise than is chosen now: ") : age;
}

void TimelinePage::show_details(const QString& details) {
  details_->setText(details.isEmpty()
                        ? tr("Point at an operation. W and S or Ctrl and the wheel zoom at the "
                             "cursor, A, D and the arrows move, F shows all.")
                        : details);
}

// On a background thread, since the names of ten million operations are compared one by one.
void TimelinePage::find_next() {
  if (gantt_->scene() == nullptr || search_->text().isEmpty()) return;
  const std::optional<std::uint32_t> now = gantt_->selected();
  finding_.start([this, scene = play_.step()->scene, text = search_->text(),
                  now](const std::atomic<bool>& /*stop*/) {
    const double from = now ? static_cast<double>(scene->times_of(*now).start.count()) : -1;
    const std::uint32_t* found = scene->find_after(text, from);
    if (found == nullptr) found = scene->find_after(text, -1);
    const auto slice = found == nullptr ? std::nullopt : std::optional(*found);
    return Background::Done([this, scene, slice, text] {
      if (gantt_->scene() == scene.get()) show_found(slice, text);
    });
  });
}

void TimelinePage::show_found(std::optional<std::uint32_t> slice, const QString& text) {
  if (!slice) {
    Q_EMIT said(tr("No operation is called %1.").arg(text));
    return;
  }
  gantt_->show_slice(*slice);
  show_details(gantt_->scene()->details_of(*slice));
}

void TimelinePage::export_to(const std::filesystem::path& file) {
  const auto words = [file](const Expected<void>& done) {
    return done ? tr("Written to %1.").arg(path_text(file)) : qt(done.error());
  };
  const auto say = [this, words](const Expected<void>& done) { Q_EMIT said(words(done)); };
  if (!play_.step()) return say(failure(file.string(), "there is no timeline yet"));
  if (file.extension() == ".png") {
    const bool done = gantt_->picture().save(path_text(file), "PNG");
    return say(done ? Expected<void>{} : failure(file.string(), "cannot be written"));
  }
  const bool is_drawing = file.extension() == ".svg";
  if (!is_drawing && !play_.step()->simulation) {
    return say(
        failure(file.string(), "the timeline was read from a trace; export a picture of it"));
  }
  export_->setEnabled(false);
  exporting_.start([this, file, is_drawing, words, drawing = gantt_->drawing(),
                    simulation = play_.step()->simulation](const std::atomic<bool>& stop) {
    const auto done = is_drawing ? write_file(file, drawing.svg().toStdString())
                                 : write_trace(file, *simulation, [&stop] { return stop.load(); });
    return Background::Done([this, message = words(done)] { end_export(message); });
  });
}

void TimelinePage::end_export(const QString& message) {
  export_->setEnabled(play_.step() != nullptr);
  Q_EMIT said(message);
}

void TimelinePage::choose_trace() {
  const QString file =
      QFileDialog::getOpenFileName(this, tr("Open a trace"), QString(), tr("Traces (*.json)"));
  if (!file.isEmpty()) open(path_of(file));
}

void TimelinePage::choose_export() {
  const std::filesystem::path file = ask_where_to_save(
      this, {.title = tr("Export the timeline"),
             .name = QStringLiteral("timeline.json"),
             .types = tr("Trace for Perfetto (*.json);;Picture (*.png);;Drawing (*.svg)")});
  if (!file.empty()) export_to(file);
}

}  // namespace trainyard
