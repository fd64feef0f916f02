// A document as a form: a row for every key that its table of fields allows, with what stands there
// now. Generated from scenarios/fields/, as reader, schema and documentation are; free of JSON, so
// that a window can show it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"

namespace trainyard {

enum class FormEditor {
  section,    // keys of its own follow
  text,       // a line
  quantity,   // a number and a unit
  number,     // whole or not
  flag,       // true or false
  choice,     // one of `choices`
  reference,  // a name of the catalog, or a path to a document
  path,       // to a file of another format
  json,       // anything else, as JSON; a list may be typed with commas alone
};

struct FormRow {
  std::string pointer;  // JSON pointer
  std::string key;
  int parent = -1;  // the row of its section; −1: a key of the document
  FormEditor editor = FormEditor::text;
  std::string doc;      // what it means
  std::string absent;   // what its absence means; empty: nothing can be said
  std::string allowed;  // in words
  bool required = false;
  bool present = false;
  std::string value;  // as it would be typed; empty when absent
  std::vector<std::string> choices;
  std::string catalog;  // reference: the kind of document
};

struct Form {
  std::string kind;  // of the document
  std::vector<FormRow> rows;
};

// Requires no valid document, only JSON with a known "trainyard" tag.
Expected<Form> form_of(std::string_view text);

// What was typed into a row, as JSON.
std::string json_of_typed(const FormRow& row, std::string_view typed);

}  // namespace trainyard
