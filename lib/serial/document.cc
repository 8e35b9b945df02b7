// The frame of IR documents, checked on reading.
#include "tpu/serial/document.h"

#include "llvm/ADT/StringExtras.h"

namespace tpu {
namespace {

struct StageRow {
  llvm::StringLiteral stage, maker;
};
constexpr StageRow kStages[] = {
    {"hlo", "tpu-partition --stop-after=import"}, {"spmd", "tpu-partition"}, {"llo", "tpu-lower"},
    {"bundles", "tpu-schedule"},                  {"object", "tpu-asm"},
};

llvm::StringRef makerOf(llvm::StringRef stage) {
  for (const StageRow& row : kStages)
    if (row.stage == stage) return row.maker;
  return "";
}

}  // namespace

std::string stageOf(llvm::StringRef bytes) {
  if (!looksLikeJson(bytes)) return "";
  int depth = 0;
  bool is_key = false;  // the string before, in the outermost object, is "stage" and a ':' came after it
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',') is_key = false;
    if (c != '"') continue;
    const size_t begin = ++i;
    while (i < bytes.size() && bytes[i] != '"') i += bytes[i] == '\\' ? 2 : 1;
    const llvm::StringRef text = bytes.slice(begin, i);
    if (is_key && depth == 1) return text.str();
    is_key = depth == 1 && text == "stage" && bytes.drop_front(std::min(i + 1, bytes.size())).ltrim().starts_with(":");
  }
  return "";
}

llvm::Error wrongStage(llvm::StringRef loc, llvm::StringRef got, llvm::ArrayRef<llvm::StringRef> wanted) {
  std::string text = ("this is a document of stage '" + got + "'; needed is '" + llvm::join(wanted, "' or '") + "'").str();
  std::vector<std::string> makers;
  for (llvm::StringRef stage : wanted)
    if (llvm::StringRef maker = makerOf(stage); !maker.empty()) makers.push_back((maker + " makes '" + stage + "'").str());
  if (!makers.empty()) text += ": " + llvm::join(makers, ", ");
  return fail(Code::kWrongStage, loc, text);
}

llvm::Error expectDocument(llvm::StringRef bytes, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> wanted) {
  if (startsLikeObject(bytes)) return wrongStage(name, "object", wanted);
  if (bytes.ltrim().empty() || bytes.ltrim().starts_with("{")) return llvm::Error::success();
  std::string text = "this is no document; needed is '" + llvm::join(wanted, "' or '") + "'";
  for (llvm::StringRef stage : wanted)
    if (llvm::StringRef maker = makerOf(stage); !maker.empty()) text += (", which " + maker + " makes").str();
  return fail(Code::kWrongStage, name, text);
}

llvm::Expected<DocumentHeader> readDocumentHeader(const JsonDoc& doc, llvm::ArrayRef<llvm::StringRef> wanted) {
  JsonValue root = doc.root();
  std::optional<JsonValue> format = root.find("format");
  if (!format || format->asString() != "tpu-ir")
    return fail(Code::kBadField, (format ? *format : root).loc(), "not a tpu-ir document: \"format\" is not \"tpu-ir\"");
  std::optional<JsonValue> version = root.find("version");
  std::optional<int64_t> number = version ? version->asInt() : std::nullopt;
  if (!number || *number < 1)
    return fail(Code::kBadField, (version ? *version : root).loc(), "the document's \"version\" is missing or no positive integer");
  if (*number > kDocumentVersion)
    return fail(Code::kNewerVersion, version->loc(), "the document has version " + llvm::Twine(*number) +
                                                         ", this tool reads up to version " + llvm::Twine(kDocumentVersion));
  std::optional<JsonValue> stage = root.find("stage");
  std::optional<llvm::StringRef> name = stage ? stage->asString() : std::nullopt;
  if (!name) return fail(Code::kBadField, (stage ? *stage : root).loc(), "the document's \"stage\" is missing or no string");
  if (!llvm::is_contained(wanted, *name)) return wrongStage(stage->loc(), *name, wanted);
  return DocumentHeader{name->str()};
}

void ignoreHeader(FieldReader* reader) {
  for (llvm::StringRef key : {"format", "version", "stage"}) reader->ignore(key);
}

}  // namespace tpu
