#include "gui/pages/sweep_form.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/pages/form_delegate.h"
#include "gui/presenters/text.h"

namespace trainyard {
namespace {

// A key is chosen from a searchable list; the other cells are typed.
class AxisDelegate : public EmphasisDelegate {
 public:
  using EmphasisDelegate::EmphasisDelegate;

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option,
                        const QModelIndex& index) const override {
    const QStringList choices = index.data(SweepAxes::choices_role).toStringList();
    QWidget* editor = choices.isEmpty() ? QStyledItemDelegate::createEditor(parent, option, index)
                                        : chooser(parent, choices, const_cast<AxisDelegate*>(this));
    editor->setAccessibleName(index.model()->headerData(index.column(), Qt::Horizontal).toString());
    return editor;
  }
  void setEditorData(QWidget* editor, const QModelIndex& index) const override {
    auto* box = qobject_cast<QComboBox*>(editor);
    if (box == nullptr) return QStyledItemDelegate::setEditorData(editor, index);
    box->setEditText(index.data(Qt::EditRole).toString());
    box->lineEdit()->selectAll();
  }
  void setModelData(QWidget* editor, QAbstractItemModel* model,
                    const QModelIndex& index) const override {
    const auto* box = qobject_cast<QComboBox*>(editor);
    if (box == nullptr) return QStyledItemDelegate::setModelData(editor, model, index);
    model->setData(index, box->currentText());
  }
};

// The axes that are proposed first. If the scenario gives the degrees, other degrees beside its
// `data_parallel` would leave most points without a legal plan. Groups of unlike nodes have no plan
// of the scenario's: the planner finds it for every point.
std::vector<DraftAxis> usual_axes(SweepForm::Varied varied) {
  if (varied == SweepForm::Varied::degrees_free) {
    return {{.key = "plan.tensor_parallel", .values = "1, 2, 4, 8"},
            {.key = "plan.pipeline_parallel", .values = "1, 2, 4, 8, 16"}};
  }
  std::vector<DraftAxis> axes = {
      {.key = "training.sequence_length", .values = "4096, 8192, 16384"}};
  if (varied == SweepForm::Varied::degrees_given) {
    axes.push_back({.key = "plan.recompute", .values = "none, selective, full"});
  }
  return axes;
}

}  // namespace

SweepForm::SweepForm(QWidget* parent)
    : QWidget(parent),
      axes_(new SweepAxes(this)),
      table_(new QTableView),
      add_(new QPushButton(tr("Add a key"))),
      remove_(new QPushButton(tr("Remove"))),
      combine_(new QComboBox),
      evaluate_(new QComboBox),
      drawn_(new QLabel(tr("points"))),
      seeded_(new QLabel(tr("seed"))),
      verdict_(new QLabel),
      samples_(new QSpinBox),
      seed_(new QSpinBox),
      where_(new QLineEdit) {
  suggest_axes(Varied::degrees_free);
  table_->setModel(axes_);
  table_->setItemDelegate(new AxisDelegate(table_));
  table_->setObjectName(QStringLiteral("axes"));
  table_->setAccessibleName(tr("Keys that vary"));
  table_->setTabKeyNavigation(false);
  edit_when_asked(*table_);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 10);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(SweepAxes::key_column, QHeaderView::Interactive);
  table_->horizontalHeader()->resizeSection(SweepAxes::key_column,
                                            table_->fontMetrics().averageCharWidth() * 44);
  table_->horizontalHeader()->setSectionResizeMode(SweepAxes::values_column, QHeaderView::Stretch);
  verdict_->setObjectName(QStringLiteral("verdict"));
  verdict_->setWordWrap(true);
  auto* top = new QHBoxLayout;
  top->addWidget(table_, 1);
  top->addWidget(make_buttons());
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(top, 1);
  layout->addWidget(make_settings());
  layout->addWidget(verdict_);
  connect(axes_, &QAbstractItemModel::dataChanged, this, &SweepForm::changed);
  connect(axes_, &QAbstractItemModel::rowsInserted, this, &SweepForm::changed);
  connect(axes_, &QAbstractItemModel::rowsRemoved, this, &SweepForm::changed);
  connect(axes_, &QAbstractItemModel::modelReset, this, &SweepForm::changed);
  show_settings();
}

void SweepForm::suggest_axes(Varied varied) {
  if (axes_->axes() != suggested_) return;
  suggested_ = usual_axes(varied);
  axes_->set_axes(suggested_);
}

QWidget* SweepForm::make_buttons() {
  add_->setObjectName(QStringLiteral("add_key"));
  remove_->setObjectName(QStringLiteral("remove_key"));
  connect(add_, &QPushButton::clicked, this, &SweepForm::add_key);
  connect(remove_, &QPushButton::clicked, this,
          [this] { axes_->remove_axis(table_->currentIndex().row()); });
  auto* buttons = new QWidget;
  auto* column = new QVBoxLayout(buttons);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(add_);
  column->addWidget(remove_);
  column->addStretch(1);
  return buttons;
}

QWidget* SweepForm::make_settings() {
  combine_->addItem(tr("Every combination"), int(Combination::grid));
  combine_->addItem(tr("One key at a time"), int(Combination::one_at_a_time));
  combine_->addItem(tr("Drawn at random"), int(Combination::random));
  combine_->setObjectName(QStringLiteral("combine"));
  combine_->setAccessibleName(tr("How the values combine"));
  evaluate_->addItem(tr("the estimate"), int(Evaluation::estimate));
  evaluate_->addItem(tr("a simulated step"), int(Evaluation::simulate));
  evaluate_->addItem(tr("the best plan"), int(Evaluation::plan));
  evaluate_->addItem(tr("the goodput of the run"), int(Evaluation::goodput));
  evaluate_->setObjectName(QStringLiteral("evaluate"));
  evaluate_->setAccessibleName(tr("What answers a point"));
  samples_->setRange(1, kMostDraftedSamples);
  samples_->setValue(200);
  samples_->setAccessibleName(tr("Points drawn"));
  seed_->setRange(0, kMostDraftedSeed);
  seed_->setAccessibleName(tr("Seed of the draw"));
  where_->setObjectName(QStringLiteral("where"));
  where_->setAccessibleName(tr("Condition that a point must meet"));
  where_->setPlaceholderText(
      tr("every point, or only where: plan.tensor_parallel * plan.pipeline_parallel <= 64"));
  auto* settings = new QWidget;
  auto* row = new QHBoxLayout(settings);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(combine_);
  row->addWidget(samples_);
  row->addWidget(drawn_);
  row->addWidget(seeded_);
  row->addWidget(seed_);
  row->addWidget(new QLabel(tr("answered by")));
  row->addWidget(evaluate_);
  row->addWidget(where_, 1);
  connect(combine_, &QComboBox::currentIndexChanged, this, &SweepForm::show_settings);
  connect(evaluate_, &QComboBox::currentIndexChanged, this, &SweepForm::changed);
  connect(samples_, &QSpinBox::valueChanged, this, &SweepForm::changed);
  connect(seed_, &QSpinBox::valueChanged, this, &SweepForm::changed);
  connect(where_, &QLineEdit::textChanged, this, &SweepForm::changed);
  return settings;
}

// Adds an axis and puts the focus on its key, which the user types next.
void SweepForm::add_key() {
  axes_->add_axis();
  const QModelIndex key = axes_->index(axes_->rowCount() - 1, SweepAxes::key_column);
  table_->setCurrentIndex(key);
  table_->edit(key);
}

void SweepForm::show_settings() {
  const bool drawn = draft().combine == Combination::random;
  for (QWidget* widget : {static_cast<QWidget*>(samples_), static_cast<QWidget*>(seed_),
                          static_cast<QWidget*>(drawn_), static_cast<QWidget*>(seeded_)}) {
    widget->setVisible(drawn);
  }
  Q_EMIT changed();
}

SweepDraft SweepForm::draft() const {
  SweepDraft draft{.axes = axes_->axes(),
                   .combine = static_cast<Combination>(combine_->currentData().toInt()),
                   .evaluate = static_cast<Evaluation>(evaluate_->currentData().toInt()),
                   .where = where_->text().trimmed().toStdString()};
  if (draft.combine == Combination::random) {
    draft.samples = samples_->value();
    draft.seed = seed_->value();
  }
  return draft;
}

void SweepForm::set_draft(const SweepDraft& draft) {
  axes_->set_axes(draft.axes);
  combine_->setCurrentIndex(combine_->findData(int(draft.combine)));
  evaluate_->setCurrentIndex(evaluate_->findData(int(draft.evaluate)));
  if (draft.combine == Combination::random) {
    samples_->setValue(static_cast<int>(draft.samples));
    seed_->setValue(static_cast<int>(draft.seed));
  }
  where_->setText(qt(draft.where));
}

void SweepForm::show_verdict(const QString& verdict) { verdict_->setText(verdict); }

}  // namespace trainyard
