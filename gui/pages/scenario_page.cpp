#include "gui/pages/scenario_page.h"

#include <QHeaderView>
#include <QLabel>
#include <QSplitter>
#include <QTreeView>
#include <QVBoxLayout>

#include "gui/charts/colours.h"
#include "gui/pages/form_delegate.h"
#include "gui/pages/json_editor.h"
#include "gui/pages/search_line.h"
#include "gui/presenters/document/form_model.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/text.h"
#include "scenarios/form.h"

namespace trainyard {

ScenarioPage::ScenarioPage(ScenarioDocument& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      form_(new FormModel(this)),
      tree_(new QTreeView),
      search_(new SearchLine(tr("Search keys and meanings"), tr("Search the form"))),
      help_(new QLabel),
      editor_(new JsonEditor),
      problem_(new QLabel),
      splitter_(new QSplitter) {
  splitter_->setObjectName(QStringLiteral("scenario"));
  splitter_->addWidget(make_form());
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(editor_);
  splitter_->addWidget(right);
  splitter_->setStretchFactor(0, 5);
  splitter_->setStretchFactor(1, 4);
  splitter_->setChildrenCollapsible(false);
  problem_->setObjectName(QStringLiteral("problem"));
  problem_->setTextFormat(Qt::RichText);
  problem_->setWordWrap(true);
  problem_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(splitter_, 1);
  layout->addWidget(problem_);
  connect(&document_, &ScenarioDocument::replaced, this, &ScenarioPage::show_another);
  connect(&document_, &ScenarioDocument::changed, this, &ScenarioPage::show_document);
  connect(form_, &FormModel::typed, this, &ScenarioPage::set_value);
  connect(editor_, &JsonEditor::edited, this, [this](const QString& text) {
    document_.set_text(text.toStdString(), ScenarioDocument::Edit::keystroke);
  });
  connect(editor_, &JsonEditor::undo_asked, &document_, &ScenarioDocument::undo);
  connect(editor_, &JsonEditor::redo_asked, &document_, &ScenarioDocument::redo);
  connect(problem_, &QLabel::linkActivated, this,
          [this] { editor_->go_to_line(document_.problem().line); });
  show_document();
}

QWidget* ScenarioPage::make_form() {
  tree_->setModel(form_);
  tree_->setObjectName(QStringLiteral("form"));
  tree_->setAccessibleName(tr("Document as a form"));
  tree_->setItemDelegate(new FormDelegate(tree_));
  edit_when_asked(*tree_);
  tree_->setUniformRowHeights(true);
  tree_->setAlternatingRowColors(true);
  tree_->header()->setStretchLastSection(true);
  tree_->setTabKeyNavigation(false);
  help_->setObjectName(QStringLiteral("help"));
  help_->setWordWrap(true);
  help_->setMinimumHeight(3 * help_->fontMetrics().height());
  help_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  auto* left = new QWidget;
  auto* column = new QVBoxLayout(left);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(search_);
  column->addWidget(tree_, 1);
  column->addWidget(help_);
  connect(search_, &QLineEdit::textChanged, this, &ScenarioPage::filter_rows);
  connect(tree_->selectionModel(), &QItemSelectionModel::currentChanged, this,
          &ScenarioPage::show_help);
  connect(form_, &QAbstractItemModel::modelReset, this, [this] {
    tree_->expandToDepth(0);
    tree_->resizeColumnToContents(FormModel::key_column);
    filter_rows(search_->text());
  });
  return left;
}

// Clears everything of the document before, even its form.
void ScenarioPage::show_another() {
  if (form_of(document_.text())) return;
  form_->set_form({});
  tree_->setEnabled(false);
}

void ScenarioPage::show_document() {
  editor_->show_text(qt(document_.text()));
  // While the text is no valid JSON, as happens during typing, the form stays as it was.
  if (auto form = form_of(document_.text())) {
    form_->set_form(*std::move(form));
    tree_->setEnabled(true);
  }
  show_problem();
}

void ScenarioPage::show_problem() {
  const DocumentProblem& problem = document_.problem();
  form_->set_problem(problem.pointer, problem.message);
  show_help();  // the help of a row includes its problem
  editor_->mark_line(problem.line, problem.message);
  if (problem.message.isEmpty()) {
    problem_->setText(tr("The document is complete."));
    return;
  }
  const QString colour = alarm_colour(palette()).name();
  const QString message = problem.message.toHtmlEscaped();
  problem_->setText(problem.line > 0 ? tr("<a href=\"line\" style=\"color:%1\">Line %2</a>: %3")
                                           .arg(colour)
                                           .arg(problem.line)
                                           .arg(message)
                                     : message);
}

void ScenarioPage::show_help() {
  const QString help = tree_->currentIndex().data(FormModel::help_role).toString();
  const bool has_keys = tree_->isEnabled();
  help_->setText(help.isEmpty() && has_keys
                     ? tr("Choose a key to read what it means and what it may be.")
                     : help);
}

void ScenarioPage::set_value(const std::string& pointer, const std::string& typed) {
  const auto done = document_.set_value(pointer, typed);
  if (!done) problem_->setText(qt(done.error()).toHtmlEscaped());
}

void ScenarioPage::filter_rows(const QString& text) { filter_below({}, text, false); }

// A row stays visible if it matches, or if a row above or below it in the tree does.
bool ScenarioPage::filter_below(const QModelIndex& parent, const QString& text, bool is_found) {
  bool any = false;
  for (int row = 0; row < form_->rowCount(parent); ++row) {
    const QModelIndex index = form_->index(row, 0, parent);
    const bool here =
        index.data().toString().contains(text, Qt::CaseInsensitive) ||
        index.data(FormModel::help_role).toString().contains(text, Qt::CaseInsensitive);
    const bool below = filter_below(index, text, is_found || here);
    tree_->setRowHidden(row, parent, !is_found && !here && !below);
    if (!text.isEmpty() && below) tree_->expand(index);
    any = any || here || below;
  }
  return any;
}

}  // namespace trainyard
