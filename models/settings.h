#pragma once
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/engine/error.h"
#include "models/json.h"

namespace saccade {

/// One thing a user can set, declared once: the form in the window, validation, `saccade architectures`, the run file's
/// attributes and the docs table all come from it.
struct Setting {
  /// layers: an integer, or a stack of groups (models/architectures/stack.h); mixer: one that stands inside another, by its short form or
  /// as an object with its settings.
  enum class Kind { boolean, integer, real, choice, text, text_list, number_list, layers, mixer };
  std::string name;
  Kind kind = Kind::integer;
  nlohmann::json default_value;
  double minimum = -std::numeric_limits<double>::infinity(), maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  ///< for choice
  std::string help;                  ///< one line, with the unit
  std::string source;                ///< paper and section, may be empty
  /// Runs that differ in it alone repeat one experiment: it names the run, draws its random numbers, or says where it computes and how
  /// often it is looked at, and changes neither the model nor how it is trained. Comparisons gather such runs (experiment_of()).
  bool repetition = false;
  /// Of a block's settings: what reads it. The stem is what stands around the layers, one for the whole model (embedding, final norm,
  /// output); layers of several groups may have values of their own.
  bool of_stem = false, of_layer = true;
};

/// Checks type, range and choice of one value; `pointer` is its JSON pointer, for the message. Throws UsageError.
void check_setting(const Setting& setting, const nlohmann::json& value, const std::string& pointer);

/// UsageError for keys of `object` that are in none of the names, with the nearest name as a suggestion.
void check_known_keys(const nlohmann::json& object, const std::vector<std::string>& names, const std::string& pointer);

/// The settings of one struct: each field with its range, help and source; defaults are the struct's own initialisers.
///
///     struct Settings { int64_t chunk = 128; std::string selection = "exact"; };
///     const Schema<Settings> schema{
///         field("chunk", &Settings::chunk, {16, 1024}, "Keys in a chunk.", "arXiv:2505.18522, section 5.1.1"),
///         field("selection", &Settings::selection, {"exact", "approx"}, "How the remote chunk is selected.",
///              "arXiv:2505.18522, section 5.1.2")};
///     Settings s = schema.read(config_json, "/architecture");
template <class S>
struct Field {
  Setting setting;
  std::function<void(S&, const nlohmann::json&)> set;
  std::function<nlohmann::json(const S&)> get;
};

struct Range {
  double minimum, maximum;
};
using Choices = std::vector<std::string>;

namespace detail {
template <class S, class M>
Field<S> make_field(std::string name, M S::*member, Setting::Kind kind, std::string help, std::string source) {
  Field<S> f;
  f.setting.name = std::move(name);
  f.setting.kind = kind;
  f.setting.help = std::move(help);
  f.setting.source = std::move(source);
  const S defaults{};
  f.setting.default_value = defaults.*member;
  f.set = [member](S& s, const nlohmann::json& v) { s.*member = v.get<M>(); };
  f.get = [member](const S& s) { return nlohmann::json(s.*member); };
  return f;
}
}  // namespace detail

template <class S>
Field<S> field(std::string name, bool S::*member, std::string help, std::string source = "") {
  return detail::make_field(std::move(name), member, Setting::Kind::boolean, std::move(help), std::move(source));
}
template <class S>
Field<S> field(std::string name, int64_t S::*member, Range range, std::string help, std::string source = "") {
  auto f = detail::make_field(std::move(name), member, Setting::Kind::integer, std::move(help), std::move(source));
  f.setting.minimum = range.minimum, f.setting.maximum = range.maximum;
  return f;
}
template <class S>
Field<S> field(std::string name, double S::*member, Range range, std::string help, std::string source = "") {
  auto f = detail::make_field(std::move(name), member, Setting::Kind::real, std::move(help), std::move(source));
  f.setting.minimum = range.minimum, f.setting.maximum = range.maximum;
  return f;
}
template <class S>
Field<S> choice_field(std::string name, std::string S::*member, Choices choices, std::string help, std::string source = "") {
  auto f = detail::make_field(std::move(name), member, Setting::Kind::choice, std::move(help), std::move(source));
  f.setting.choices = std::move(choices);
  return f;
}
template <class S>
Field<S> text_field(std::string name, std::string S::*member, std::string help, std::string source = "") {
  return detail::make_field(std::move(name), member, Setting::Kind::text, std::move(help), std::move(source));
}
template <class S>
Field<S> list_field(std::string name, std::vector<std::string> S::*member, std::string help, std::string source = "") {
  return detail::make_field(std::move(name), member, Setting::Kind::text_list, std::move(help), std::move(source));
}

template <class S>
Field<S> mixer_field(std::string name, nlohmann::json S::*member, std::string help, std::string source = "") {
  return detail::make_field(std::move(name), member, Setting::Kind::mixer, std::move(help), std::move(source));
}
/// Numbers, each in the range.
template <class S>
Field<S> list_field(std::string name, std::vector<double> S::*member, Range range, std::string help, std::string source = "") {
  auto f = detail::make_field(std::move(name), member, Setting::Kind::number_list, std::move(help), std::move(source));
  f.setting.minimum = range.minimum, f.setting.maximum = range.maximum;
  return f;
}

/// Marks a field as a Setting::repetition.
template <class S>
Field<S> repetition(Field<S> f) {
  f.setting.repetition = true;
  return f;
}

/// Marks a block's field as one of the stem, or of the stem and the layers.
template <class S>
Field<S> stem_only(Field<S> f) {
  f.setting.of_stem = true, f.setting.of_layer = false;
  return f;
}
template <class S>
Field<S> stem_too(Field<S> f) {
  f.setting.of_stem = true;
  return f;
}
/// The settings' values: what `object` gives, checked, else the default. Throws UsageError.
nlohmann::json resolved_values(const std::vector<Setting>& settings, const nlohmann::json& object, const std::string& pointer);

template <class S>
class Schema {
 public:
  Schema(std::initializer_list<Field<S>> fields) : fields_(fields) {}

  /// Values given in `object` over the defaults; other keys are ignored here (check_known_keys covers them).
  S read(const nlohmann::json& object, const std::string& pointer) const {
    S s{};
    for (const auto& f : fields_) {
      if (!object.contains(f.setting.name)) continue;
      check_setting(f.setting, object.at(f.setting.name), pointer + "/" + f.setting.name);
      f.set(s, object.at(f.setting.name));
    }
    return s;
  }
  nlohmann::json write(const S& s) const {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& f : fields_) object[f.setting.name] = f.get(s);
    return object;
  }
  std::vector<Setting> settings() const {
    std::vector<Setting> list;
    for (const auto& f : fields_) list.push_back(f.setting);
    return list;
  }

 private:
  std::vector<Field<S>> fields_;
};

}  // namespace saccade
