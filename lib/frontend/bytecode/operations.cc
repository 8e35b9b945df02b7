// Operations, regions and values as they stand in the file.
//
// Values have no names: a use is a number in the list of values of the nearest region that is isolated from
// above. That list grows by the values of a region when it is entered and shrinks when it is left. Here every
// value gets a number of its own, so that the tree that comes out needs no lists.
#include "operations.h"

#include "../parser.h"

namespace tpu::frontend::bytecode {
namespace {

// Fields that an op has, in the byte behind its name.
enum Mask : uint8_t {
  kAttrs = 0x01,
  kResults = 0x02,
  kOperands = 0x04,
  kSuccessors = 0x08,
  kRegions = 0x10,
  kUseOrders = 0x20,
  kHasProperties = 0x40
};

// The values that can be seen: one list per isolated region.
struct Scope {
  std::vector<uint32_t> values;  // kNone: of an open region, not defined yet
};

class Reader {
 public:
  explicit Reader(File& file) : f(file) {}

  bool top(Bytes in) {
    Scope scope;
    uint64_t ops;
    size_t next = 0;
    RawRegion region;
    if (!blockHeader(in, region, ops, scope, next)) return false;
    if (ops != 1) return in.fail("a program is one module");
    uint32_t id;
    if (!op(in, scope, next, 0, id)) return false;
    f.top = id;
    return in.left() == 0 || in.fail("bytes follow the module");
  }

 private:
  bool attr(Bytes& in, uint32_t& id) {
    uint64_t value;
    if (!in.index(value, f.attrs.size(), "attribute")) return false;
    id = static_cast<uint32_t>(value);
    return true;
  }
  bool type(Bytes& in, uint32_t& id) {
    uint64_t value;
    if (!in.index(value, f.types.size(), "type")) return false;
    id = static_cast<uint32_t>(value);
    return true;
  }

  // Gives the next value of the region that is being read its number.
  bool define(Bytes& in, Scope& scope, size_t& next, uint32_t& value) {
    if (next >= scope.values.size()) return in.fail("a region defines more values than it says");
    value = f.num_values++;
    scope.values[next++] = value;
    return true;
  }

  bool skipUseOrders(Bytes& in, size_t values) {
    uint64_t lists = 1, ignored, count;
    bool pairs;
    if (values > 1 && !in.count(lists)) return false;
    for (uint64_t i = 0; i < lists; ++i) {
      if (values > 1 && !in.varint(ignored)) return false;
      if (!in.flagged(count, pairs)) return false;
      for (uint64_t k = 0; k < count; ++k)
        if (!in.varint(ignored)) return false;
    }
    return true;
  }

  bool blockHeader(Bytes& in, RawRegion& region, uint64_t& ops, Scope& scope, size_t& next) {
    bool has_args;
    if (!in.flagged(ops, has_args)) return false;
    if (ops > in.left()) return in.fail("a block of more operations than bytes are left");
    if (!has_args) return true;
    uint64_t count;
    if (!in.count(count)) return false;
    for (uint64_t i = 0; i < count; ++i) {
      BlockArg arg;
      bool has_loc = true;
      uint64_t of;
      if (f.version >= 4 ? !in.flagged(of, has_loc) : !in.varint(of)) return false;
      if (of >= f.types.size()) return in.fail("type " + llvm::Twine(of) + " is referred to");
      arg.type = static_cast<uint32_t>(of);
      if ((has_loc && !attr(in, arg.loc)) || !define(in, scope, next, arg.value)) return false;
      region.args.push_back(arg);
    }
    uint8_t orders = 0;
    if (f.version >= 3 && !in.byte(orders)) return false;
    return !orders || skipUseOrders(in, count);
  }

  bool region(Bytes& in, Scope& scope, int depth, uint32_t& id) {
    if (depth > kMaxDepth) return in.fail(Code::kTooDeep, "regions nest too deeply");
    id = static_cast<uint32_t>(f.regions.size());
    f.regions.emplace_back();
    uint64_t blocks, values, ops;
    if (!in.varint(blocks)) return false;
    if (!blocks) return true;
    if (blocks > 1) return in.fail("regions of several blocks are not part of StableHLO");
    // A value takes at least a byte where it is defined, so a file of n bytes has no more than n in all.
    if (!in.count(values)) return false;
    if ((claimed_ += values) > f.data.size())
      return in.fail("regions of more values than the file can define");
    size_t outer = scope.values.size(), next = outer;
    scope.values.resize(outer + values, kNone);
    RawRegion region;
    if (!blockHeader(in, region, ops, scope, next)) return false;
    for (uint64_t i = 0; i < ops; ++i) {
      uint32_t child;
      if (!op(in, scope, next, depth, child)) return false;
      region.ops.push_back(child);
    }
    scope.values.resize(outer);
    f.regions[id] = std::move(region);
    return true;
  }

  bool op(Bytes& in, Scope& scope, size_t& next, int depth, uint32_t& id) {
    id = static_cast<uint32_t>(f.ops.size());
    f.ops.emplace_back();
    RawOp op;
    op.offset = in.offset();
    uint64_t name;
    uint8_t mask;
    if (!in.index(name, f.op_names.size(), "operation name") || !in.byte(mask) || !attr(in, op.loc))
      return false;
    op.name = static_cast<uint32_t>(name);
    if (mask & kSuccessors) return in.fail("successors are not part of StableHLO");
    if ((mask & kAttrs) && !attr(in, op.attrs)) return false;
    if ((mask & kHasProperties) && !properties(in, op)) return false;
    if ((mask & kResults) && !results(in, scope, next, op)) return false;
    if ((mask & kOperands) && !operands(in, scope, op)) return false;
    if ((mask & kUseOrders) && !skipUseOrders(in, op.result_types.size())) return false;
    if ((mask & kRegions) && !regions(in, scope, depth, op)) return false;
    f.ops[id] = std::move(op);
    return true;
  }

  bool properties(Bytes& in, RawOp& op) {
    if (!f.op_names[op.name].registered) return attr(in, op.properties);
    uint64_t row;
    if (!in.index(row, f.properties.size(), "property")) return false;
    op.properties = static_cast<uint32_t>(row);
    return true;
  }

  bool results(Bytes& in, Scope& scope, size_t& next, RawOp& op) {
    uint64_t count;
    if (!in.count(count)) return false;
    op.first_result = f.num_values;
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t of;
      if (!type(in, of)) return false;
      op.result_types.push_back(of);
    }
    // An op's own results may not be its operands, but they are numbered in front of its regions' values.
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t value;
      if (!define(in, scope, next, value)) return false;
    }
    return true;
  }

  bool operands(Bytes& in, const Scope& scope, RawOp& op) {
    uint64_t count;
    if (!in.count(count)) return false;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t value;
      if (!in.index(value, scope.values.size(), "value")) return false;
      uint32_t defined = scope.values[value];
      bool own = defined != kNone && !op.result_types.empty() && defined >= op.first_result;
      if (defined == kNone || own) return in.fail("a value is used before it is defined");
      op.operands.push_back(defined);
    }
    return true;
  }

  bool regions(Bytes& in, Scope& scope, int depth, RawOp& op) {
    uint64_t count;
    bool isolated;
    if (!in.flagged(count, isolated)) return false;
    if (count > in.left()) return in.fail("an operation of more regions than bytes are left");
    // Isolated regions lie in a section of their own, all those of an op in one.
    Scope own;
    Bytes inner = in;
    bool section = isolated && count && f.version >= 2;
    if (section) {
      llvm::StringRef data;
      if (!readIrSection(in, data)) return false;
      inner = in.part(data);
    }
    Bytes& from = section ? inner : in;
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t id;
      if (!region(from, isolated ? own : scope, depth + 1, id)) return false;
      op.regions.push_back(id);
    }
    return !section || inner.left() == 0 || inner.fail("bytes follow a region");
  }

  File& f;
  uint64_t claimed_ = 0;  // values of all regions so far
};

}  // namespace

bool readOperations(Bytes in, File& file) { return Reader(file).top(in); }

}  // namespace tpu::frontend::bytecode
