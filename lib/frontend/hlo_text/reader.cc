// The way in: comments are blanked out, the text is read, the module is built.
#include "../hlo_text.h"
#include "build.h"

namespace tpu::frontend {
namespace {

// "/*index=5*/" becomes blanks, outside of strings; line breaks stay, so places stay.
std::string withoutComments(llvm::StringRef text) {
  std::string out = text.str();
  for (size_t i = 0; i + 1 < out.size(); ++i) {
    if (out[i] == '"') {
      for (++i; i < out.size() && out[i] != '"' && out[i] != '\n'; ++i)
        if (out[i] == '\\') ++i;
    } else if (out[i] == '/' && out[i + 1] == '*') {
      const size_t end = std::min(out.find("*/", i + 2), out.size() - 2) + 2;
      for (; i < end; ++i)
        if (out[i] != '\n') out[i] = ' ';
      --i;
    }
  }
  return out;
}

}  // namespace

llvm::Expected<hlo::Module> parseHloText(llvm::StringRef text, llvm::StringRef filename, DiagnosticSink& sink) {
  const std::string copy = withoutComments(text);
  Cursor c(copy, filename == "-" || filename.empty() ? llvm::StringRef("<stdin>") : filename);
  hlo::Module module;
  hlo_text::Text parsed;
  if (!hlo_text::readText(c, parsed) || !hlo_text::Build(c, parsed, module, baseName(filename), sink).run() || c.failed())
    return c.takeError();
  return module;
}

}  // namespace tpu::frontend
