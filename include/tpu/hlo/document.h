// Programs as canonical JSON documents of stage "hlo" and "spmd": flat tables, one row per line.
//
// Tables, in order: attributes, options, meshes, shardings, literals, funcs, ports, regions, ops, whys. What
// refers does so by id: an op's operands are "a0" (argument 0 of its function), "17" (the result of op 17),
// "17.1" (its result 1) and "r17.0.2" (argument 2 of region 0 of op 17). Ops stand in program order, an op in
// front of those of its regions; ids count from 0 in that order. Locations are readable text. Constants are a
// number where all elements are equal, a list where they are few integers, else base64 (over 4 KiB in the
// table of literals).
//
// The fields bytes, trips, group and wire_bytes follow from others; they stand there for jq and are ignored
// on reading. Writing what was read gives the same bytes.
#pragma once
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/hlo/module.h"

namespace tpu {
class JsonDoc;
}

namespace tpu::hlo {

/// With `only`, the rows of one table. Fails only where that is no table.
llvm::Error writeDocument(const Module& module, llvm::raw_ostream& os, llvm::StringRef only = "");

/// Unknown fields, ids without a row and values of the wrong kind are refused at their place. Not verified
/// (verify.h).
llvm::Expected<Module> readDocument(llvm::StringRef text, llvm::StringRef filename);
llvm::Expected<Module> readDocument(const JsonDoc& document);

/// Bytes of a value as an array of its element type stands in host layout; 0 for tokens.
int64_t byteSize(const Module& module, TypeId type);
/// Mean bytes that one device sends over the wires for one execution of a collective of stage spmd.
double wireBytes(const Module& module, OpId op);

}  // namespace tpu::hlo
