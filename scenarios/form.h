// A document as a form: a row for every key that its table of fields allows, with its present
// value. Generated from scenarios/fields/, like the reader, the schema and the documentation. Has
// no JSON type in its interface, so that a window can show it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"

namespace trainyard {

enum class FormEditor {
  section,    // an object; rows of its keys follow
  text,       // one line of text
  quantity,   // a number and a unit
  number,     // a number without a unit
  flag,       // true or false
  choice,     // one of `choices`
  reference,  // a catalog name, or a path to a document
  path,       // a path to a file of another format
  json,       // anything else, as JSON; a list may be typed with commas alone
};

struct FormRow {
  std::string pointer;  // JSON pointer
  std::string key;
  int parent = -1;  // row of the section that has the key; −1: the document itself
  FormEditor editor = FormEditor::text;
  std::string doc;      // what the key means
  std::string absent;   // what its absence means; empty: not stated
  std::string allowed;  // allowed values, in words
  bool required = false;
  bool present = false;
  std::string value;  // as one would type it; empty if absent
  std::vector<std::string> choices;
  std::string catalog;  // for references: the kind of document
};

struct Form {
  std::string kind;  // kind of the document
  std::vector<FormRow> rows;
};

// The form of a document. Fails unless the text is JSON with a known "trainyard" tag; the document
// need not be valid.
Expected<Form> form_of(std::string_view text);

// What was typed into a row, as JSON text.
std::string json_of_typed(const FormRow& row, std::string_view typed);

}  // namespace trainyard
