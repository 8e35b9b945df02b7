// The frame that all IR documents share: {"format":"tpu-ir","version":1,"stage":...} and flat tables, one row per line.
//
//   {"format":"tpu-ir","version":1,"stage":"spmd",
//   "target":"v5e:4x2",
//   "ops":[
//   {"id":0,"op":"add",...},
//   {"id":1,...}
//   ]}
//
// Add-only within a version. A newer version, another stage or an unknown field is refused by name.
#pragma once
#include <memory>

#include "tpu/serial/fields.h"
#include "tpu/serial/json.h"
#include "tpu/serial/json_writer.h"

namespace tpu {

inline constexpr int kDocumentVersion = 1;

class DocumentWriter {
 public:
  /// With `only`, the rows of that table alone are written, one per line (JSONL), and no frame.
  DocumentWriter(llvm::raw_ostream& os, llvm::StringRef stage, llvm::StringRef only = "");
  /// A field outside the tables: write exactly one value to what is returned.
  JsonWriter& field(llvm::StringRef name);
  void beginTable(llvm::StringRef name);
  /// A writer for one row of the open table: write exactly one value (usually an object) to it.
  JsonWriter& row();
  void endTable();
  /// Closes the frame. Fails with kUsageError, listing the tables, where `only` named none of them.
  llvm::Error finish();

 private:
  llvm::raw_ostream* os_;
  std::string only_;
  bool wanted_ = true;  // what is being written now goes to os_
  bool first_row_ = true;
  std::vector<std::string> tables_;
  std::unique_ptr<JsonWriter> json_;
};

struct DocumentHeader {
  std::string stage;
};
/// Checks the frame of a document: an object of our format, of a version we know, of one of the stages `wanted`.
/// Otherwise kBadField, kNewerVersion (naming both), or kWrongStage (naming what it is and which tool makes what is needed).
llvm::Expected<DocumentHeader> readDocumentHeader(const JsonDoc& doc, llvm::ArrayRef<llvm::StringRef> wanted);
/// The error of readDocumentHeader for a stage that is not wanted; for inputs that are no JSON ("object").
llvm::Error wrongStage(llvm::StringRef loc, llvm::StringRef got, llvm::ArrayRef<llvm::StringRef> wanted);
/// The first bytes of an object file.
inline bool startsLikeObject(llvm::StringRef bytes) { return bytes.starts_with("\x7fTPUOBJ"); }
/// The stage that a document names, wherever in its outermost object: "" for anything else. Reads no further than that,
/// and checks nothing.
std::string stageOf(llvm::StringRef bytes);
/// Fails in words of stages where the input is plainly no document: an object, or a text of another kind.
llvm::Error expectDocument(llvm::StringRef bytes, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> wanted);
/// Marks "format", "version" and "stage" as known.
void ignoreHeader(FieldReader* reader);

}  // namespace tpu
