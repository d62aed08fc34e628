#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "experiments/ablation/plan.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/program/command.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

using Json = nlohmann::ordered_json;

Json section(Settings& settings, std::string const& kind, int depth);

/// Adds a field's least and greatest value, if it has any.
Json ranged(Json schema, Field const& field) {
  if (std::isfinite(field.min)) schema[field.open ? "exclusiveMinimum" : "minimum"] = field.min;
  if (std::isfinite(field.max)) schema[field.open ? "exclusiveMaximum" : "maximum"] = field.max;
  return schema;
}

Json words(Field const& field) {
  Json schema{{"type", "string"}};
  if (!field.words.empty()) schema["enum"] = field.words;
  return schema;
}

Json list_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

/// A schema, or one of these words if there are any.
Json or_one_of(Json schema, Json const& words) { return words.empty() ? schema : Json{{"anyOf", {std::move(schema), {{"enum", words}}}}}; }
Json or_none(Json schema) { return or_one_of(std::move(schema), {nullptr, "none"}); }

/// The schema of a field's value. A string without words may also be a number or a boolean, as which YAML reads names like 2024 or no.
struct Describe {
  Field const& field;
  int depth;

  Json operator()(bool*) const { return {{"type", "boolean"}}; }
  Json operator()(Index*) const { return ranged({{"type", "integer"}}, field); }
  Json operator()(double*) const { return ranged({{"type", "number"}}, field); }
  Json operator()(std::string*) const {
    if (!field.words.empty()) return words(field);
    return {{"type", {"string", "number", "boolean"}}};
  }
  Json operator()(std::vector<double>*) const { return list_of(ranged({{"type", "number"}}, field)); }
  Json operator()(std::vector<std::string>*) const { return list_of(words(field)); }
  Json operator()(std::vector<std::vector<double>>*) const { return list_of(list_of(ranged({{"type", "number"}}, field))); }
  Json operator()(std::optional<double>*) const { return or_none(ranged({{"type", "number"}}, field)); }
  Json operator()(std::optional<Index>*) const { return or_none(ranged({{"type", "integer"}}, field)); }
  Json operator()(std::optional<std::string>*) const { return or_none(words(field)); }
  Json operator()(Settings* settings) const {
    Json const whole = section(*settings, "", depth + 1);
    if (settings->has_own_words()) return {{"anyOf", {whole, {{"type", {"string", "number"}}}}}};
    return or_one_of(whole, settings->short_words());
  }
  Json operator()(SettingsList* list) const { return list_of((*this)(list->one().get())); }
  Json operator()(SettingsMap* named) const {
    return or_one_of({{"type", "object"}, {"additionalProperties", (*this)(named->one().get())}}, named->words);
  }
  /// A section with its kind, or the name of the kind alone.
  Json operator()(Choice* choice) const {
    Json kinds = Json::array();
    for (auto const& option : choice->options) {
      kinds.push_back(section(*option.make(), option.name, depth + 1));
      kinds.back()["description"] = option.help;
    }
    kinds.push_back({{"enum", names_of(choice->options)}});
    return {{"anyOf", kinds}};
  }
};

/// The schema of a section; `kind`: the kind that selects it, "" for a section without kinds.
Json section(Settings& settings, std::string const& kind, int depth) {
  constexpr int deepest = 8;  // settings may be recursive
  if (depth > deepest) return {{"type", "object"}};
  Json properties = Json::object(), required = Json::array();
  if (!kind.empty()) {
    properties["kind"] = {{"const", kind}};
    required.push_back("kind");
  }
  for (auto const& field : settings.fields()) {
    properties[field.name] = std::visit(Describe{field, depth}, field.target);
    if (!field.help.empty()) properties[field.name]["description"] = field.help;
    if (field.required) required.push_back(field.name);
  }
  Json schema{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

/// The schema of an ablation: its own fields, and the keys whose values are keys of the base.
Json ablation_section() {
  AblationSettings settings;
  Json schema = section(settings, "", 0);
  Json const values{{"type", "object"}, {"additionalProperties", {{"type", "array"}, {"minItems", 1}}}};
  Json const seeds{
      {"anyOf", {{{"type", "integer"}, {"minimum", 1}}, {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}}}}};
  auto& properties = schema["properties"];
  properties["base"]["type"] = {"string", "object"};
  properties["set"] = {{"type", "object"}};
  properties["vary"] = values;
  properties["together"] = values;
  properties["add"] = {{"type", "object"}, {"additionalProperties", {{"type", "object"}}}};
  properties["skip"] = list_of({{"type", "object"}});
  properties["seeds"] = seeds;
  properties["baseline"] = {{"type", {"object", "string", "number"}}};
  properties["tune"] = {
      {"type", "object"}, {"properties", {{"grid", values}, {"seeds", seeds}}}, {"required", {"grid"}}, {"additionalProperties", false}};
  Json const number{{"type", "number"}}, by_step{{"type", "object"}, {"additionalProperties", number}};
  properties["published"] = {{"type", "object"}, {"additionalProperties", {{"anyOf", {number, by_step}}}}};
  for (auto const& key : ablation_keys()) properties[key.name]["description"] = key.help;
  return schema;
}

/// Keys of an ablation, and others.
Json beside_ablation() {
  Json schema = ablation_section();
  schema["additionalProperties"] = true;
  schema.erase("required");  // tasks may have them
  schema["properties"].erase("ablation");
  return schema;
}

struct NoOptions {};

Declared<Command> const schema_command{
    {.order = 17,
     .name = "schema",
     .usage = "",
     .help = "print a JSON Schema of configuration files, with which editors complete and check YAML",
     .footer = "example:\n  heed schema > heed.schema.json     # then, first in a file: # yaml-language-server: $schema=heed.schema.json",
     .add = with_options<NoOptions>(nullptr, [](NoOptions const&) {
       std::cout << schema();
       return Exit::done;
     })}};

}  // namespace

std::string schema() {
  Experiment experiment;
  Json other = section(experiment, "", 0);
  other["required"] = {"data"};
  other["anyOf"] = {{{"required", {"model"}}}, {{"required", {"init"}}}};  // the weights of init.from bring their model
  for (FileKind const& kind : Registry<FileKind>::all())
    other = {{"if", {{"required", {kind.name}}}},
             {"then", kind.settings != nullptr ? section(*kind.settings(), "", 0) : beside_ablation()},
             {"else", std::move(other)}};
  Json const whole{{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", "a configuration of heed"},
                   {"if", {{"required", {"ablation"}}}},
                   {"then", ablation_section()},
                   {"else", other}};
  return json_text(whole, 1) + "\n";
}

}  // namespace heed
