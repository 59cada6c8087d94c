#include "analysis/tasks/task_forms.h"

#include <algorithm>
#include <array>

#include "analysis/tasks/scoring.h"
#include "analysis/tasks/unicode_text.h"
#include "kernels/engine/error.h"
#include "models/replaced.h"

namespace saccade {
namespace {

using nlohmann::json;

std::string text_of(const json& row, const std::string& field) { return fill_template("{" + field + "}", row); }

/// A label that is a number or a text that holds one.
int64_t number_of(const json& row, const std::string& field) {
  const std::string text = text_of(row, field);
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos || text.size() > 9)
    throw DataError("field \"" + field + "\" is \"" + text + "\", expected a number");
  return std::stoll(text);
}
/// The choice of a label of `field` that counts from `first`.
size_t gold_among(const json& row, const std::string& field, size_t choices, int64_t first = 0) {
  const int64_t gold = number_of(row, field) - first;
  if (gold < 0 || gold >= static_cast<int64_t>(choices))
    throw DataError("field \"" + field + "\" is " + std::to_string(gold + first) + ", expected a number from " + std::to_string(first) +
                    " to " + std::to_string(first + static_cast<int64_t>(choices) - 1));
  return static_cast<size_t>(gold);
}

/// ARC and OpenBookQA as their authors publish them: question {stem, choices [{text, label}]}.
void normalise_question(json& row) {
  if (!row.contains("question") || !row["question"].is_object()) return;
  const json question = row["question"];
  row["question"] = field_of(question, "stem");
  row["question_stem"] = row["question"];
  json text = json::array(), label = json::array();
  for (const json& choice : field_of(question, "choices")) {
    text.push_back(field_of(choice, "text"));
    label.push_back(field_of(choice, "label"));
  }
  row["choices"] = {{"text", text}, {"label", label}};
}
void normalise_openbookqa(json& row) {
  normalise_question(row);
  row["answerKey"] = trimmed(text_of(row, "answerKey"));
}

void normalise_boolq(json& row) {
  if (!row.contains("label") && row.contains("answer")) row["label"] = row["answer"];
  if (row.contains("label") && row["label"].is_boolean()) row["label"] = row["label"].get<bool>() ? 1 : 0;
}

void normalise_sciq(json& row) { row["support"] = std::string(without_blanks_before(text_of(row, "support"))); }

void normalise_mmlu(json& row) {
  row["question"] = trimmed(text_of(row, "question"));
  std::string subject = text_of(row, "subject");
  std::replace(subject.begin(), subject.end(), '_', ' ');
  row["subject_in_words"] = subject;
}

TaskItem make_hellaswag(const Task&, const json& row, const TaskItemOptions&) {
  const std::string second = capital(lower(text_of(row, "ctx_b")));
  const std::string context = clean_hellaswag(text_of(row, "activity_label") + ": " + text_of(row, "ctx_a") + " " + second);
  TaskItem item;
  for (const json& ending : field_of(row, "endings")) {
    if (!ending.is_string()) throw DataError("field \"endings\" holds what is no text");
    const std::string choice = clean_hellaswag(ending.get<std::string>());
    item.requests.push_back({context, " " + choice, choice});
  }
  item.gold = gold_among(row, "label", item.requests.size());
  return item;
}

/// The options stand in the context, what is scored is the same for both.
TaskItem make_winogrande(const Task&, const json& row, const TaskItemOptions&) {
  const std::string sentence = text_of(row, "sentence");
  const size_t blank = sentence.find('_');
  if (blank == sentence.npos) throw DataError("field \"sentence\" has no _");
  const std::string rest = trimmed(sentence.substr(blank + 1));
  TaskItem item;
  for (const char* option : {"option1", "option2"})
    item.requests.push_back({sentence.substr(0, blank) + text_of(row, option), " " + rest, rest});
  item.gold = gold_among(row, "answer", 2, 1);
  return item;
}

/// WSC273: an option takes the place of the pronoun, in its case. `before`: the text up to the pronoun.
std::string wsc_option(std::string option, const std::string& pronoun, const std::string& before) {
  static const std::array<std::string, 5> possessive{"my", "his", "her", "our", "their"};
  static const std::array<std::string, 11> small{"A", "An", "The", "She", "He", "It", "They", "My", "His", "Her", "Their"};
  if (std::find(possessive.begin(), possessive.end(), lower(pronoun)) != possessive.end()) option += "'s";
  const size_t end = std::min(option.find(' '), option.size());
  const std::string first = option.substr(0, end);
  const bool is_small = std::find(small.begin(), small.end(), first) != small.end();
  const int64_t count = characters(before);
  if (is_small && count >= 2 && before[place_of(before, count - 2)] != '.') option.replace(0, end, lower(first));
  return option;
}
/// pronoun_loc counts characters, as Python does.
TaskItem make_wsc273(const Task& task, const json& row, const TaskItemOptions& options) {
  const std::string text = replaced(text_of(row, "text"), "  ", " ");
  const std::string pronoun = text_of(row, "pronoun");
  const int64_t at = number_of(row, "pronoun_loc"), behind = at + characters(pronoun);
  if (behind > characters(text)) throw DataError("field \"pronoun_loc\" points behind the text");
  const std::string before = text.substr(0, place_of(text, at));
  const std::string rest = text.substr(place_of(text, behind));  // brings a space of its own, like COPA's choices
  TaskItem item;
  for (const json& option : field_of(row, "options")) {
    if (!option.is_string()) throw DataError("field \"options\" holds what is no text");
    item.requests.push_back(
        {before + wsc_option(option.get<std::string>(), pronoun, before), options.strict_spaces ? rest : task.delimiter + rest, rest});
  }
  item.gold = gold_among(row, "label", item.requests.size());
  return item;
}

/// RACE: one item for an article, its problems but the last with their answers.
json race_problems(const json& row) {
  if (row.contains("problems")) {
    if (!row["problems"].is_array())
      throw DataError("field \"problems\" is no array; where it is Python's text of one, ast.literal_eval reads it");
    return row["problems"];
  }
  json problems = json::array();
  const json& questions = field_of(row, "questions");
  for (size_t i = 0; i < questions.size(); ++i)
    problems.push_back({{"question", questions[i]},
                        {"options", field_of(row, "options[" + std::to_string(i) + "]")},
                        {"answer", field_of(row, "answers[" + std::to_string(i) + "]")}});
  return problems;
}
size_t race_answer(const json& problem) {
  const std::string answer = text_of(problem, "answer");
  const size_t options = field_of(problem, "options").size();
  if (answer.size() != 1 || answer[0] < 'A' || answer[0] - 'A' >= static_cast<int64_t>(options))
    throw DataError("field \"answer\" is \"" + answer + "\", expected one of the first " + std::to_string(options) + " letters");
  return static_cast<size_t>(answer[0] - 'A');
}
TaskItem make_race(const Task&, const json& row, const TaskItemOptions&) {
  const json problems = race_problems(row);
  if (problems.empty()) throw DataError("has no problems");
  constexpr std::string_view kBlank = "  _  .";
  std::string context = "Article: " + text_of(row, "article") + "\n\n";
  for (size_t i = 0; i + 1 < problems.size(); ++i) {
    std::string question = text_of(problems[i], "question");
    const std::string answer = text_of(problems[i], "options[" + std::to_string(race_answer(problems[i])) + "]");
    if (question.ends_with(kBlank))
      context += question.erase(question.size() - 5) + answer + "\n";
    else
      context += "Question: " + question + "\nAnswer: " + answer + "\n";
  }
  const json& last = problems.back();
  context += text_of(last, "question");
  TaskItem item;
  for (size_t i = 0; i < field_of(last, "options").size(); ++i) {
    const std::string choice = text_of(last, "options[" + std::to_string(i) + "]");
    item.requests.push_back({context, " " + choice, choice});
  }
  item.gold = race_answer(last);
  return item;
}

/// COPA: the premise goes on with "because" or "therefore". The choices bring a space of their own, and the delimiter is another: the
/// published numbers were made that way.
TaskItem make_copa(const Task& task, const json& row, const TaskItemOptions& options) {
  std::string context = trimmed(text_of(row, "premise"));
  context.resize(place_of(context, characters(context) - 1));
  const std::string question = text_of(row, "question");
  if (question != "cause" && question != "effect") throw DataError("field \"question\" is \"" + question + "\", expected cause or effect");
  context += question == "cause" ? " because" : " therefore";
  TaskItem item;
  for (const char* field : {"choice1", "choice2"}) {
    std::string choice = text_of(row, field);
    const size_t first = place_of(choice, 1);
    choice = lower(choice.substr(0, first)) + choice.substr(first);
    const std::string own = " " + choice;
    item.requests.push_back({context, options.strict_spaces ? own : task.delimiter + own, own});
  }
  item.gold = gold_among(row, "label", 2);
  return item;
}

const std::vector<TaskForm>& forms() {
  static const std::vector<TaskForm> list{{"arc", normalise_question},
                                          {"openbookqa", normalise_openbookqa},
                                          {"boolq", normalise_boolq},
                                          {"mmlu", normalise_mmlu},
                                          {"sciq", normalise_sciq},
                                          {"hellaswag", {}, make_hellaswag},
                                          {"winogrande", {}, make_winogrande},
                                          {"wsc273", {}, make_wsc273},
                                          {"race", {}, make_race},
                                          {"copa", {}, make_copa}};
  return list;
}

}  // namespace

std::string clean_hellaswag(std::string text) {
  text = replaced(trimmed(text), " [title]", ". ");
  for (size_t open = text.find('['); open != text.npos; open = text.find('[', open)) {
    const size_t close = text.find_first_of("]\n", open);
    if (close == text.npos) break;
    if (text[close] == ']')
      text.erase(open, close - open + 1);
    else
      open = close;  // no bracket that spans lines
  }
  return replaced(text, "  ", " ");
}

const TaskForm& task_form(const std::string& name) {
  std::string names;
  for (const TaskForm& form : forms()) {
    if (form.name == name) return form;
    names += " " + form.name;
  }
  throw UsageError("there is no form \"" + name + "\" of a task; expected one of" + names);
}

}  // namespace saccade
