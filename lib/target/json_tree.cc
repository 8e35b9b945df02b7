#include "json_tree.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "tpu/support/diagnostics.h"

namespace tpu::target {
namespace {

constexpr int kMaxDepth = 32;

struct Reader {
  llvm::StringRef json, file;
  size_t at = 0;
  int depth = 0;

  llvm::Error failAt(size_t position, const llvm::Twine& text) const {
    return fail(Code::kBadJson, locate(json, file, position), text);
  }
  void skipSpace() {
    while (at < json.size() && (json[at] == ' ' || json[at] == '\n' || json[at] == '\t' || json[at] == '\r'))
      ++at;
  }
  char peek() {
    skipSpace();
    return at < json.size() ? json[at] : '\0';
  }
  llvm::Error expect(char c) {
    if (peek() != c)
      return failAt(at, llvm::Twine("expected '") + llvm::Twine(c) +
                            (at < json.size() ? "'" : "', found the end of the file"));
    ++at;
    return llvm::Error::success();
  }

  llvm::Error escape(std::string* out) {
    const char c = at < json.size() ? json[at++] : '\0';
    const size_t found = llvm::StringRef("\"\\/bfnrt").find(c);
    if (found != llvm::StringRef::npos) {
      *out += "\"\\/\b\f\n\r\t"[found];
      return llvm::Error::success();
    }
    unsigned code = 0;
    if (c != 'u' || json.substr(at, 4).size() != 4 || json.substr(at, 4).getAsInteger(16, code))
      return failAt(at, "bad escape");
    at += 4;
    char utf8[4], *end = utf8;
    if (!llvm::ConvertCodePointToUTF8(code, end)) return failAt(at, "bad escape");
    out->append(utf8, end);
    return llvm::Error::success();
  }

  llvm::Error readText(std::string* out) {
    const size_t begin = at;
    if (llvm::Error error = expect('"')) return error;
    while (at < json.size() && json[at] != '"') {
      const char c = json[at++];
      if (static_cast<unsigned char>(c) < 0x20) return failAt(at - 1, "control character in a string");
      if (c != '\\') {
        *out += c;
      } else if (llvm::Error error = escape(out)) {
        return error;
      }
    }
    if (at >= json.size()) return failAt(begin, "string without end");
    ++at;
    return llvm::Error::success();
  }

  llvm::Error readMembers(JsonNode* node, char close) {
    if (++depth > kMaxDepth) return failAt(at, "nested too deeply");
    ++at;
    while (peek() != close) {
      if (!node->children.empty()) {
        if (llvm::Error error = expect(',')) return error;
      }
      JsonNode child;
      skipSpace();
      const size_t key_at = at;
      if (close == '}') {
        if (llvm::Error error = readText(&child.key)) return error;
        if (node->find(child.key)) return failAt(key_at, "'" + llvm::Twine(child.key) + "' stands twice");
        if (llvm::Error error = expect(':')) return error;
      }
      if (llvm::Error error = readValue(&child)) return error;
      node->children.push_back(std::move(child));
    }
    ++at;
    --depth;
    return llvm::Error::success();
  }

  llvm::Error readWord(JsonNode* node) {
    const llvm::StringRef word = json.substr(at).take_while(
        [](char c) { return llvm::isAlnum(c) || c == '-' || c == '+' || c == '.'; });
    if (word == "true" || word == "false") {
      node->kind = JsonNode::kBool, node->truth = word == "true";
    } else if (word == "null") {
      node->kind = JsonNode::kNull;
    } else if (!word.getAsInteger(10, node->number) && word[0] != '+') {
      node->kind = JsonNode::kInt;
    } else if (word.empty()) {
      return failAt(at,
                    at < json.size() ? "expected a value" : "expected a value, found the end of the file");
    } else {
      return failAt(at, "'" + word + "' is not an integer, true, false or null");
    }
    at += word.size();
    return llvm::Error::success();
  }

  llvm::Error readValue(JsonNode* node) {
    const char c = peek();
    node->at = at;
    if (c == '{') {
      node->kind = JsonNode::kObject;
      return readMembers(node, '}');
    }
    if (c == '[') {
      node->kind = JsonNode::kList;
      return readMembers(node, ']');
    }
    if (c != '"') return readWord(node);
    node->kind = JsonNode::kText;
    return readText(&node->text);
  }
};

}  // namespace

const JsonNode* JsonNode::find(llvm::StringRef name) const {
  for (const JsonNode& child : children)
    if (child.key == name) return &child;
  return nullptr;
}

std::string locate(llvm::StringRef json, llvm::StringRef file, size_t at) {
  const llvm::StringRef before = json.take_front(at);
  const size_t line_begin = before.rfind('\n') == llvm::StringRef::npos ? 0 : before.rfind('\n') + 1;
  return (file + ":" + llvm::Twine(before.count('\n') + 1) + ":" +
          llvm::Twine(before.size() - line_begin + 1))
      .str();
}

llvm::Expected<JsonNode> parseJsonTree(llvm::StringRef json, llvm::StringRef file) {
  Reader reader{json, file};
  JsonNode root;
  if (llvm::Error error = reader.readValue(&root)) return error;
  if (reader.peek() != '\0' || reader.at < json.size())
    return reader.failAt(reader.at, "text after the end of the document");
  return root;
}

void appendJsonText(std::string& out, llvm::StringRef text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    } else {
      out += "\\u00";
      out += llvm::hexdigit(c >> 4, true);
      out += llvm::hexdigit(c & 15, true);
    }
  }
  out += '"';
}

}  // namespace tpu::target
