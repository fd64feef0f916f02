// The scenario as a form and as JSON, side by side. Both can be edited; each follows the other.
#pragma once

#include <QWidget>

class QLabel;
class QLineEdit;
class QSplitter;
class QTreeView;

namespace trainyard {

class FormModel;
class JsonEditor;
class ScenarioDocument;

class ScenarioPage : public QWidget {
  Q_OBJECT
 public:
  ScenarioPage(ScenarioDocument& document, QWidget* parent = nullptr);

  JsonEditor& editor() { return *editor_; }

 private:
  void show_another();
  void show_document();
  void show_problem();
  void show_help();
  void set_value(const std::string& pointer, const std::string& typed);
  void filter_rows(const QString& text);
  bool filter_below(const QModelIndex& parent, const QString& text, bool is_found);
  QWidget* make_form();

  ScenarioDocument& document_;
  FormModel* form_;
  QTreeView* tree_;
  QLineEdit* search_;
  QLabel* help_;
  JsonEditor* editor_;
  QLabel* problem_;
  QSplitter* splitter_;
};

}  // namespace trainyard
