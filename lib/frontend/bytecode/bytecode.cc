// Checking that a file is an artifact of a version that is known, then reading it.
#include "bytecode.h"

#include <array>

#include "import.h"

namespace tpu::frontend {
namespace {

using namespace bytecode;
using Version = std::array<unsigned, 3>;

// The newest version of StableHLO whose operations stand in ops.def. The oldest is the first one that
// promises to be readable later.
constexpr Version kNewest = {1, 17, 0}, kOldest = {0, 9, 0};

std::string versionText(const Version& v) {
  return std::to_string(v[0]) + "." + std::to_string(v[1]) + "." + std::to_string(v[2]);
}

// "StableHLO_v1.17.0"
bool readVersion(llvm::StringRef producer, Version& version) {
  if (!producer.consume_front("StableHLO_v")) return false;
  llvm::SmallVector<llvm::StringRef, 3> parts;
  producer.split(parts, '.');
  if (parts.size() != 3) return false;
  for (size_t i = 0; i < 3; ++i)
    if (parts[i].getAsInteger(10, version[i])) return false;
  return true;
}

bool checkVersion(const File& file, Fault& fault) {
  Version version;
  if (!readVersion(file.producer, version))
    return fault.set(Code::kUnsupportedFormat, file.producer_offset,
                     "this is MLIR bytecode written by '" + file.producer.take_front(80) +
                         "', not a portable artifact of StableHLO, as jax.export and "
                         "stablehlo.serialize_portable_artifact write");
  if (version > kNewest || version < kOldest)
    return fault.set(Code::kUnsupportedFormat, file.producer_offset,
                     "the program is of StableHLO " + versionText(version) + "; versions " +
                         versionText(kOldest) + " to " + versionText(kNewest) + " are read");
  if (file.version > kFormatVersion)
    return fault.set(Code::kUnsupportedFormat, 4,
                     "the file is of version " + llvm::Twine(file.version) +
                         " of MLIR bytecode; versions up to " + llvm::Twine(kFormatVersion) + " are read");
  return true;
}

}  // namespace

llvm::Expected<hlo::Module> readBytecode(llvm::StringRef bytes, llvm::StringRef filename,
                                         DiagnosticSink& sink, const ReadOptions& options) {
  if (filename.empty() || filename == "-") filename = "<stdin>";
  Fault fault;
  Bytes in(bytes, 0, fault);
  File file;
  file.data = bytes;
  hlo::Module module;
  if (!readHeader(in, file) || !checkVersion(file, fault) || !readSections(in, file))
    return fault.take(filename);
  Entries entries(file, fault);
  Importer importer(file, entries, filename, module);
  if (!importer.run(options.any_entry) || fault.isSet()) return fault.take(filename);
  if (!importer.sawFileLoc())
    sink.warn(Code::kNoLocations, module.source_file,
              "the program has no source locations; lines are those of the text that was serialised");
  return module;
}

}  // namespace tpu::frontend
