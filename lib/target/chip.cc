// Reads a chip file: values with their marks are collected by field ("timings.pop.latency"), over those of
// the base chip where one is named; then the table of fields fills a Chip and writes the canonical text.
#include "tpu/target/chip.h"

#include <map>

#include "builtin.h"
#include "check.h"
#include "json_tree.h"
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

// One field as it stood in the file, with where it stood.
struct Field {
  JsonNode value;
  std::string mark, source, loc;
  const JsonNode* bracket() const { return has_bracket ? &bracket_node : nullptr; }
  JsonNode bracket_node;
  bool has_bracket = false;
};
using Fields = std::map<std::string, Field>;

llvm::Error badValue(const Field& field, const llvm::Twine& text) {
  return fail(Code::kBadChipValue, field.loc, text);
}

class FileReader {
 public:
  FileReader(llvm::StringRef json, llvm::StringRef file) : json_(json), file_(file) {}

  llvm::Error read(Fields* fields, std::string* name) {
    auto root = parseJsonTree(json_, file_);
    if (!root) return root.takeError();
    if (root->kind != JsonNode::kObject) return failAt(*root, "a chip file is one JSON object");
    if (llvm::Error error = readHeader(*root, fields, name)) return error;
    for (const JsonNode& member : root->children) {
      if (member.key == "format" || member.key == "version" || member.key == "name" || member.key == "base")
        continue;
      if (llvm::Error error = readMember(member, fields)) return error;
    }
    return llvm::Error::success();
  }

 private:
  llvm::Error failAt(const JsonNode& node, const llvm::Twine& text, Code code = Code::kBadChipFile) const {
    return fail(code, locate(json_, file_, node.at), text);
  }

  llvm::Error readHeader(const JsonNode& root, Fields* fields, std::string* name) {
    const JsonNode* format = root.find("format");
    if (!format || format->text != "tpu-chip")
      return failAt(root, "not a chip file: \"format\" is not \"tpu-chip\"");
    const JsonNode* version = root.find("version");
    if (!version || version->kind != JsonNode::kInt || version->number < 1)
      return failAt(version ? *version : root, "\"version\" must be 1");
    if (version->number > kVersion)
      return failAt(*version,
                    "chip file of version " + llvm::Twine(version->number) + "; this tool knows version " +
                        llvm::Twine(kVersion),
                    Code::kNewerVersion);
    const JsonNode* own = root.find("name");
    if (!own || own->kind != JsonNode::kText || !isChipName(own->text))
      return failAt(own ? *own : root, "\"name\" must be letters, digits, '_' and '-'");
    *name = own->text;
    const JsonNode* base = root.find("base");
    if (!base) return llvm::Error::success();
    const char* text = findBuiltin(base->text);
    if (!text) return failAt(*base, "unknown base chip '" + base->text + "'");
    std::string ignored;
    return FileReader(text, base->text).read(fields, &ignored);
  }

  llvm::Error readMember(const JsonNode& member, Fields* fields) {
    if (member.key == "slots") return readGroup(member, "slots", kSlotKeys, fields);
    if (member.key == "timings") {
      if (member.kind != JsonNode::kObject) return failAt(member, "\"timings\" is an object");
      static constexpr const char* kTimingKeys[] = {"latency", "interval"};
      for (const JsonNode& cls : member.children) {
        if (!isOneOf(cls.key, kClassKeys))
          return failAt(cls, "unknown latency class '" + llvm::Twine(cls.key) + "'", Code::kUnknownField);
        if (llvm::Error error = readGroup(cls, "timings." + cls.key, kTimingKeys, fields)) return error;
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
      return failAt(member, "unknown field '" + llvm::Twine(member.key) + "'", Code::kUnknownField);
    return readField(member, member.key, fields);
  }

  static bool isOneOf(llvm::StringRef key, llvm::ArrayRef<const char*> keys) {
    return llvm::any_of(keys, [&](const char* k) { return key == k; });
  }

  llvm::Error readGroup(const JsonNode& group, const std::string& path, llvm::ArrayRef<const char*> keys,
                        Fields* fields) {
    if (group.kind != JsonNode::kObject) return failAt(group, "\"" + path + "\" is an object");
    for (const JsonNode& member : group.children) {
      if (!isOneOf(member.key, keys))
        return failAt(member, "unknown field '" + llvm::Twine(member.key) + "' in \"" + path + "\"",
                      Code::kUnknownField);
      if (llvm::Error error = readField(member, path + "." + member.key, fields)) return error;
    }
    return llvm::Error::success();
  }

  // Either a bare value, which counts as assumed, or an object with value, mark, source and bracket.
  llvm::Error readField(const JsonNode& node, const std::string& path, Fields* fields) {
    Field field;
    field.loc = locate(json_, file_, node.at);
    if (node.kind != JsonNode::kObject) {
      field.value = node;
      field.mark = "assumed";
      (*fields)[path] = std::move(field);
      return llvm::Error::success();
    }
    for (const JsonNode& part : node.children) {
      if (part.key == "value") {
        field.value = part;
      } else if (part.key == "mark" &&
                 (part.text == "published" || part.text == "inferred" || part.text == "assumed")) {
        field.mark = part.text;
      } else if (part.key == "source" && part.kind == JsonNode::kText) {
        field.source = part.text;
      } else if (part.key == "bracket" && part.kind == JsonNode::kList && part.children.size() == 2) {
        field.bracket_node = part;
        field.has_bracket = true;
      } else if (part.key == "mark" || part.key == "source" || part.key == "bracket") {
        return failAt(
            part, "\"mark\" is published, inferred or assumed, \"source\" a string, \"bracket\" [low, high]");
      } else {
        return failAt(part, "unknown field '" + llvm::Twine(part.key) + "' of '" + path + "'",
                      Code::kUnknownField);
      }
    }
    if (!node.find("value")) return failAt(node, "'" + path + "' has no \"value\"");
    if (field.mark.empty()) return failAt(node, "'" + path + "' has no \"mark\"");
    if (field.mark == "published" && field.source.empty())
      return failAt(node, "'" + path + "' is published but names no \"source\"");
    if (llvm::Error error = checkBracket(node, path, field)) return error;
    (*fields)[path] = std::move(field);
    return llvm::Error::success();
  }

  llvm::Error checkBracket(const JsonNode& node, const std::string& path, const Field& field) const {
    if (!field.has_bracket) return llvm::Error::success();
    const JsonNode& low = field.bracket_node.children[0];
    const JsonNode& high = field.bracket_node.children[1];
    if (low.kind != JsonNode::kInt || high.kind != JsonNode::kInt || field.value.kind != JsonNode::kInt ||
        low.number > field.value.number || high.number < field.value.number)
      return failAt(node, "'" + path + "' lies outside its \"bracket\"");
    return llvm::Error::success();
  }

  llvm::StringRef json_, file_;
};

// Fills members of a Chip from fields; every field of the table must be there.
struct Filler {
  const Fields& fields;
  llvm::StringRef file;

  llvm::Expected<const Field*> get(const std::string& path, JsonNode::Kind kind, const char* what) const {
    auto it = fields.find(path);
    if (it == fields.end()) return fail(Code::kBadChipFile, file, "'" + path + "' is missing");
    if (it->second.value.kind != kind) return badValue(it->second, "'" + path + "' must be " + what);
    return &it->second;
  }
  template <class T>
  llvm::Error integer(const std::string& path, int64_t lo, int64_t hi, T* out) const {
    auto field = get(path, JsonNode::kInt, "an integer");
    if (!field) return field.takeError();
    const int64_t v = (*field)->value.number;
    if (v < lo || v > hi)
      return badValue(**field, "'" + path + "' is " + llvm::Twine(v) + "; it must lie between " +
                                   llvm::Twine(lo) + " and " + llvm::Twine(hi));
    *out = static_cast<T>(v);
    return llvm::Error::success();
  }
  llvm::Error truth(const std::string& path, bool* out) const {
    auto field = get(path, JsonNode::kBool, "true or false");
    if (!field) return field.takeError();
    *out = (*field)->value.truth;
    return llvm::Error::success();
  }
  llvm::Error text(const std::string& path, std::string* out) const {
    auto field = get(path, JsonNode::kText, "a string");
    if (!field) return field.takeError();
    *out = (*field)->value.text;
    return llvm::Error::success();
  }
  llvm::Error texts(const std::string& path, std::vector<std::string>* out) const {
    auto field = get(path, JsonNode::kList, "a list of strings");
    if (!field) return field.takeError();
    for (const JsonNode& child : (*field)->value.children) {
      if (child.kind != JsonNode::kText) return badValue(**field, "'" + path + "' must be a list of strings");
      out->push_back(child.text);
    }
    return llvm::Error::success();
  }
  llvm::Error integers(const std::string& path, std::vector<int64_t>* out) const {
    auto field = get(path, JsonNode::kList, "a list of integers");
    if (!field) return field.takeError();
    for (const JsonNode& child : (*field)->value.children) {
      if (child.kind != JsonNode::kInt) return badValue(**field, "'" + path + "' must be a list of integers");
      out->push_back(child.number);
    }
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

  void value(const JsonNode& node) {
    switch (node.kind) {
      case JsonNode::kNull:
        out += "null";
        return;
      case JsonNode::kBool:
        out += node.truth ? "true" : "false";
        return;
      case JsonNode::kInt:
        out += std::to_string(node.number);
        return;
      case JsonNode::kText:
        appendJsonText(out, node.text);
        return;
      default:
        break;
    }
    out += '[';
    for (const JsonNode& child : node.children) {
      if (&child != &node.children.front()) out += ',';
      value(child);
    }
    out += ']';
  }
  void field(const char* key, const std::string& path) {
    const Field& f = fields.at(path);
    out += '"';
    out += key;
    out += "\":{\"value\":";
    value(f.value);
    out += ",\"mark\":\"" + f.mark + '"';
    if (!f.source.empty()) {
      out += ",\"source\":";
      appendJsonText(out, f.source);
    }
    if (f.bracket()) {
      out += ",\"bracket\":";
      value(*f.bracket());
    }
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

llvm::Expected<Chip> parseChip(llvm::StringRef json, llvm::StringRef file_name) {
  Fields fields;
  Chip chip;
  if (llvm::Error error = FileReader(json, file_name).read(&fields, &chip.name)) return error;
  if (llvm::Error error = fillChip({fields, file_name}, &chip)) return error;
  auto locOf = [&](const std::string& path) { return fields.at(path).loc; };
  if (llvm::Error error = checkChip(chip, locOf)) return error;
  Printer printer{fields, {}};
  printer.all(chip.name);
  chip.json = std::move(printer.out);
  return chip;
}

}  // namespace tpu::target
