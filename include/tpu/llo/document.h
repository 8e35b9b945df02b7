// The `llo` document: a module as flat JSON tables, one row per line, and its text for people.
//
// Code is the table "code": one row per statement in program order, of function "driver", "kernel <k>" or
// "companion <c>". A statement inside a loop or branch names it by "parent" (an id in the same function) and
// "arm" (which of its blocks). A machine instruction is "insn", a string in tpu-asm's grammar on virtual
// registers (%s3 %v4 %m0 %p1 %mxu0 %xlu0); all other statements say what they "do". A scalar is a number or a
// register's name. Transfers are rows of "dmas". The description of a built-in chip, "chip", may be left out.
#pragma once
#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/llo/llo.h"

namespace tpu::llo {

/// Canonical text; equal modules give equal bytes. With `only`, the rows of that table alone.
llvm::Error writeDocument(const Module& module, llvm::raw_ostream& os, llvm::StringRef only = "");
std::string writeDocument(const Module& module);
/// Any bytes are safe; what is malformed is refused at its line and column. The module is not verified (see
/// verify.h).
llvm::Expected<Module> readDocument(std::string json, llvm::StringRef name);

/// Compact, indented text of kernels and driver.
void printText(const Module& module, llvm::raw_ostream& os);

/// "%s3" and so on.
std::string registerName(isa::RegClass cls, int32_t reg);
std::string scalarName(const Scalar& s);
/// Spelling of pseudo values and statement kinds in documents and text: "grid", "sem.wait".
llvm::StringRef pseudoName(PseudoKind kind);
llvm::StringRef stmtName(StmtKind kind);

}  // namespace tpu::llo
