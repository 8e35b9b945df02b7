// Reads a chip file: values with their marks are collected by field ("timings.pop.latency"), over those of
// the base chip where one is named; then the table of fields fills a Chip and writes the canonical text.
#include "tpu/target/chip.h"

#include <map>

#include "builtin.h"
#include "check.h"
#include "llvm/ADT/StringSet.h"
#include "tpu/serial/fields.h"
#include "tpu/serial/json_writer.h"
#include "tpu/support/diagnostics.h"

namespace tpu::target {
namespace {

constexpr int64_t kVersion = 1;

constexpr const char* kSlotKeys[] = {
#define TPU_SLOT(id, short_name, name, doc) name,
#include "tpu/target/slots.def"
};
constexpr const char* kClassKeys[] = {
#define TPU_LATENCY_CLASS(id, name, doc) name,
#include "tpu/target/latency_classes.def"
};

// One field as it stood in the file, with where it stood. Values are kept as canonical JSON text.
struct Field {
  JsonKind kind = JsonKind::kNull;
  bool truth = false;
  int64_t number = 0;
  std::string text;                // kString
  std::vector<std::string> texts;  // kArray of strings
  std::vector<int64_t> numbers;    // kArray of integers
  std::string json;                // the value, canonical
  std::string mark, source, bracket;
  std::optional<JsonValue> node;  // the value in the file
  std::string loc() const { return node ? node->loc() : ""; }
};
using Fields = std::map<std::string, Field>;

llvm::Error badValue(const Field& field, const llvm::Twine& text) {
  return fail(Code::kBadChipValue, field.loc(), text);
}

class FileReader {
 public:
  explicit FileReader(JsonValue root) : root_(root) {}

  llvm::Error read(Fields* fields, std::string* name) {
    if (!root_.isObject()) return failAt(root_, "a chip file is one JSON object");
    if (llvm::Error error = readHeader(fields, name)) return error;
    llvm::StringSet<> seen;
    for (const JsonMember member : root_.members()) {
      if (!seen.insert(member.key).second) return failAt(member.value, "'" + member.key + "' stands twice");
      if (isOneOf(member.key, {"format", "version", "name", "base"})) continue;
      if (llvm::Error error = readMember(member, fields)) return error;
    }
    return llvm::Error::success();
  }

 private:
  static llvm::Error failAt(JsonValue value, const llvm::Twine& text, Code code = Code::kBadChipFile) {
    return fail(code, value.loc(), text);
  }

  llvm::Error readHeader(Fields* fields, std::string* name) {
    const auto format = root_.find("format"), version = root_.find("version"), own = root_.find("name");
    if (!format || format->asString() != llvm::StringRef("tpu-chip"))
      return failAt(root_, "not a chip file: \"format\" is not \"tpu-chip\"");
    const int64_t number = version ? version->asInt().value_or(0) : 0;
    if (number < 1) return failAt(version.value_or(root_), "\"version\" must be 1");
    if (number > kVersion)
      return failAt(*version,
                    "chip file of version " + llvm::Twine(number) + "; this tool knows version " +
                        llvm::Twine(kVersion),
                    Code::kNewerVersion);
    if (!own || !isChipName(own->asString().value_or("")))
      return failAt(own.value_or(root_), "\"name\" must be letters, digits, '_' and '-'");
    *name = own->asString()->str();
    const auto base = root_.find("base");
    if (!base) return llvm::Error::success();
    const llvm::StringRef base_name = base->asString().value_or("");
    const char* text = findBuiltin(base_name);
    if (!text) return failAt(*base, "unknown base chip '" + base_name + "'");
    auto doc = JsonDoc::parse(base_name, text);
    if (!doc) return doc.takeError();
    std::string ignored;
    return FileReader(doc->root()).read(fields, &ignored);
  }

  llvm::Error readMember(const JsonMember& member, Fields* fields) {
    if (member.key == "slots") return readGroup(member.value, "slots", kSlotKeys, fields);
    if (member.key == "timings") {
      if (!member.value.isObject()) return failAt(member.value, "\"timings\" is an object");
      for (const JsonMember cls : member.value.members()) {
        if (!isOneOf(cls.key, kClassKeys))
          return failAt(cls.value, "unknown latency class '" + cls.key + "'", Code::kUnknownField);
        if (llvm::Error error =
                readGroup(cls.value, ("timings." + cls.key).str(), {"latency", "interval"}, fields))
          return error;
      }
      return llvm::Error::success();
    }
    static constexpr const char* kKeys[] = {
#define TPU_CHIP_INT(member, lo, hi, doc) #member,
#define TPU_CHIP_BOOL(member, doc) #member,
#define TPU_CHIP_TEXT(member, doc) #member,
#define TPU_CHIP_TEXTS(member, doc) #member,
#define TPU_CHIP_INTS(member, doc) #member,
#define TPU_CHIP_SLOTS()
#define TPU_CHIP_TIMINGS()
#include "chip_fields.def"
    };
    if (!isOneOf(member.key, kKeys))
      return failAt(member.value, "unknown field '" + member.key + "'", Code::kUnknownField);
    return readField(member.value, member.key.str(), fields);
  }

  static bool isOneOf(llvm::StringRef key, llvm::ArrayRef<const char*> keys) {
    return llvm::any_of(keys, [&](const char* k) { return key == k; });
  }

  llvm::Error readGroup(JsonValue group, const std::string& path, llvm::ArrayRef<const char*> keys,
                        Fields* fields) {
    if (!group.isObject()) return failAt(group, "\"" + path + "\" is an object");
    for (const JsonMember member : group.members()) {
      if (!isOneOf(member.key, keys))
        return failAt(member.value, "unknown field '" + member.key + "' in \"" + path + "\"",
                      Code::kUnknownField);
      if (llvm::Error error = readField(member.value, (path + "." + member.key).str(), fields)) return error;
    }
    return llvm::Error::success();
  }

  static llvm::Error readValue(JsonValue value, const std::string& path, Field* field) {
    field->kind = value.kind();
    llvm::raw_string_ostream os(field->json);
    JsonWriter w(os);
    if (const auto truth = value.asBool()) {
      field->truth = *truth;
      w.boolean(*truth);
    } else if (const auto number = value.asInt()) {
      field->kind = JsonKind::kInt;
      field->number = *number;
      w.integer(*number);
    } else if (const auto text = value.asString()) {
      field->text = text->str();
      w.string(*text);
    } else if (value.isArray()) {
      for (const JsonValue child : value.elements()) {
        if (const auto item = child.asInt()) field->numbers.push_back(*item);
        if (const auto item = child.asString()) field->texts.push_back(item->str());
      }
      if (field->numbers.size() == value.size())
        w.ints(field->numbers);
      else if (field->texts.size() == value.size())
        w.strings(field->texts);
      else
        return failAt(value, "'" + path + "' must be a list of integers or of strings");
    } else {
      return failAt(value, "'" + path + "' must not be " + jsonKindName(value.kind()));
    }
    return llvm::Error::success();
  }

  // Either a bare value, which counts as assumed, or an object with value, mark, source and bracket.
  llvm::Error readField(JsonValue node, const std::string& path, Fields* fields) {
    Field field;
    field.node = node;
    field.mark = "assumed";
    if (node.isObject()) {
      if (llvm::Error error = readMarked(node, path, &field)) return error;
    } else if (llvm::Error error = readValue(node, path, &field)) {
      return error;
    }
    (*fields)[path] = std::move(field);
    return llvm::Error::success();
  }

  static llvm::Error readMarked(JsonValue node, const std::string& path, Field* field) {
    FieldReader r(node, "chip value");
    const auto value = r.required("value");
    field->mark = r.requiredString("mark").str();
    field->source = r.optionalString("source").str();
    llvm::SmallVector<int64_t, 2> bracket;
    const bool has_bracket = r.optionalInts("bracket", &bracket);
    if (llvm::Error error = r.finish()) return error;
    if (field->mark != "published" && field->mark != "inferred" && field->mark != "assumed")
      return failAt(node, "the mark of '" + path + "' must be published, inferred or assumed");
    if (field->mark == "published" && field->source.empty())
      return failAt(node, "'" + path + "' is published but names no \"source\"");
    if (llvm::Error error = readValue(*value, path, field)) return error;
    if (!has_bracket) return llvm::Error::success();
    if (bracket.size() != 2 || field->kind != JsonKind::kInt || bracket[0] > field->number ||
        bracket[1] < field->number)
      return failAt(node, "'" + path + "' lies outside its \"bracket\"");
    field->bracket = "[" + std::to_string(bracket[0]) + "," + std::to_string(bracket[1]) + "]";
    return llvm::Error::success();
  }

  JsonValue root_;
};

// Fills members of a Chip from fields; every field of the table must be there.
struct Filler {
  const Fields& fields;
  std::string file;

  llvm::Expected<const Field*> get(const std::string& path, JsonKind kind, const char* what) const {
    auto it = fields.find(path);
    if (it == fields.end()) return fail(Code::kBadChipFile, file, "'" + path + "' is missing");
    if (it->second.kind != kind) return badValue(it->second, "'" + path + "' must be " + what);
    return &it->second;
  }
  template <class T>
  llvm::Error integer(const std::string& path, int64_t lo, int64_t hi, T* out) const {
    auto field = get(path, JsonKind::kInt, "an integer");
    if (!field) return field.takeError();
    const int64_t v = (*field)->number;
    if (v < lo || v > hi)
      return badValue(**field, "'" + path + "' is " + llvm::Twine(v) + "; it must lie between " +
                                   llvm::Twine(lo) + " and " + llvm::Twine(hi));
    *out = static_cast<T>(v);
    return llvm::Error::success();
  }
  llvm::Error truth(const std::string& path, bool* out) const {
    auto field = get(path, JsonKind::kBool, "true or false");
    if (!field) return field.takeError();
    *out = (*field)->truth;
    return llvm::Error::success();
  }
  llvm::Error text(const std::string& path, std::string* out) const {
    auto field = get(path, JsonKind::kString, "a string");
    if (!field) return field.takeError();
    *out = (*field)->text;
    return llvm::Error::success();
  }
  llvm::Error texts(const std::string& path, std::vector<std::string>* out) const {
    auto field = get(path, JsonKind::kArray, "a list of strings");
    if (!field) return field.takeError();
    if (!(*field)->numbers.empty()) return badValue(**field, "'" + path + "' must be a list of strings");
    *out = (*field)->texts;
    return llvm::Error::success();
  }
  llvm::Error integers(const std::string& path, std::vector<int64_t>* out) const {
    auto field = get(path, JsonKind::kArray, "a list of integers");
    if (!field) return field.takeError();
    if (!(*field)->texts.empty()) return badValue(**field, "'" + path + "' must be a list of integers");
    *out = (*field)->numbers;
    return llvm::Error::success();
  }
};

llvm::Error fillGroups(const Filler& fill, Chip* chip) {
  for (size_t i = 0; i < chip->slots.size(); ++i)
    if (llvm::Error error = fill.integer(std::string("slots.") + kSlotKeys[i], 1, 16, &chip->slots[i]))
      return error;
  for (const char* cls : kClassKeys) {
    Timing timing;
    const std::string path = std::string("timings.") + cls;
    if (llvm::Error error = fill.integer(path + ".latency", 1, 1000000, &timing.latency)) return error;
    if (llvm::Error error = fill.integer(path + ".interval", 1, 1000000, &timing.interval)) return error;
    chip->timings.emplace_back(cls, timing);
  }
  return llvm::Error::success();
}

llvm::Error fillChip(const Filler& fill, Chip* chip) {
#define TPU_CHIP_INT(member, lo, hi, doc) \
  if (llvm::Error error = fill.integer(#member, lo, hi, &chip->member)) return error;
#define TPU_CHIP_BOOL(member, doc) \
  if (llvm::Error error = fill.truth(#member, &chip->member)) return error;
#define TPU_CHIP_TEXT(member, doc) \
  if (llvm::Error error = fill.text(#member, &chip->member)) return error;
#define TPU_CHIP_TEXTS(member, doc) \
  if (llvm::Error error = fill.texts(#member, &chip->member)) return error;
#define TPU_CHIP_INTS(member, doc) \
  if (llvm::Error error = fill.integers(#member, &chip->member)) return error;
#define TPU_CHIP_SLOTS()
#define TPU_CHIP_TIMINGS()
#include "chip_fields.def"
  return fillGroups(fill, chip);
}

// The canonical text: one field per line in the order of the table.
struct Printer {
  const Fields& fields;
  std::string out;

  void field(const char* key, const std::string& path) {
    const Field& f = fields.at(path);
    out += '"';
    out += key;
    out += "\":{\"value\":" + f.json + ",\"mark\":\"" + f.mark + '"';
    if (!f.source.empty()) {
      llvm::raw_string_ostream os(out);
      os << ",\"source\":";
      writeJsonString(os, f.source);
    }
    if (!f.bracket.empty()) out += ",\"bracket\":" + f.bracket;
    out += '}';
  }
  void member(const char* key) {
    out += ",\n";
    field(key, key);
  }
  void slots() {
    out += ",\n\"slots\":{";
    for (const char* key : kSlotKeys) {
      out += key == kSlotKeys[0] ? "\n  " : ",\n  ";
      field(key, std::string("slots.") + key);
    }
    out += '}';
  }
  void timings() {
    out += ",\n\"timings\":{";
    for (const char* cls : kClassKeys) {
      out += cls == kClassKeys[0] ? "\n  \"" : ",\n  \"";
      out += cls;
      out += "\":{";
      field("latency", std::string("timings.") + cls + ".latency");
      out += ",\n   ";
      field("interval", std::string("timings.") + cls + ".interval");
      out += '}';
    }
    out += '}';
  }
  void all(const std::string& name) {
    out = "{\"format\":\"tpu-chip\",\"version\":" + std::to_string(kVersion) + ",\"name\":\"" + name + '"';
#define TPU_CHIP_INT(m, lo, hi, doc) member(#m);
#define TPU_CHIP_BOOL(m, doc) member(#m);
#define TPU_CHIP_TEXT(m, doc) member(#m);
#define TPU_CHIP_TEXTS(m, doc) member(#m);
#define TPU_CHIP_INTS(m, doc) member(#m);
#define TPU_CHIP_SLOTS() slots();
#define TPU_CHIP_TIMINGS() timings();
#include "chip_fields.def"
    out += "}\n";
  }
};

}  // namespace

Timing Chip::timing(llvm::StringRef cls) const {
  for (const auto& [name, timing] : timings)
    if (cls == name) return timing;
  assert(false && "unknown latency class");
  return {};
}

llvm::Expected<Chip> chipFromJson(const JsonValue& value) {
  Fields fields;
  Chip chip;
  if (llvm::Error error = FileReader(value).read(&fields, &chip.name)) return error;
  if (llvm::Error error = fillChip({fields, value.loc()}, &chip)) return error;
  auto locOf = [&](const std::string& path) { return fields.at(path).loc(); };
  if (llvm::Error error = checkChip(chip, locOf)) return error;
  Printer printer{fields, {}};
  printer.all(chip.name);
  chip.json = std::move(printer.out);
  return chip;
}

llvm::Expected<Chip> parseChip(llvm::StringRef json, llvm::StringRef file_name) {
  auto doc = JsonDoc::parse(file_name, json.str());
  if (!doc) return doc.takeError();
  return chipFromJson(doc->root());
}

}  // namespace tpu::target
