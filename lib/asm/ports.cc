// .arg and .result: NAME, TYPE[dims], SPACE:ADDRESS, and keys shards=, layout=, alias=, loc=.
#include "directive_context.h"
#include "llvm/ADT/StringExtras.h"

namespace tpu::assembly {
namespace {

// "bf16[128,256]"
llvm::Error readType(const LineCursor& cursor, const Argument& a, isa::SignaturePort* port) {
  const llvm::StringRef name = a.text.take_until([](char c) { return c == '['; });
  const auto element = parseElementType(name);
  if (!element || name.size() == a.text.size())
    return cursor.failAt(a, "expected a type such as bf16[128,256]");
  if (elementBits(*element) > 32) return cursor.failAt(a, "64-bit types have no device layout");
  port->element = *element;
  auto dims = cursor.list({a.text.substr(name.size()), a.at + name.size()});
  if (!dims) return dims.takeError();
  for (const Argument& dim : *dims) {
    auto n = cursor.numberIn(dim, 0, int64_t{1} << 48);
    if (!n) return n.takeError();
    port->global_dims.push_back(*n);
  }
  return llvm::Error::success();
}

// "[1:2.4:2, -]": per dimension stride:size of each mesh factor.
llvm::Error readShards(const LineCursor& cursor, const Argument& a, isa::SignaturePort* port) {
  auto dims = cursor.list(a);
  if (!dims) return dims.takeError();
  if (dims->size() != port->global_dims.size())
    return cursor.failAt(a, "the array has " + llvm::Twine(port->global_dims.size()) + " dimensions");
  for (const Argument& dim : *dims) {
    auto& factors = port->shards.emplace_back();
    if (dim.text == "-") continue;
    for (llvm::StringRef factor : llvm::split(dim.text, '.')) {
      const auto [stride, size] = factor.split(':');
      isa::ShardFactor f;
      if (stride.trim().getAsInteger(10, f.stride) || size.trim().getAsInteger(10, f.size) || f.stride < 1 ||
          f.size < 1)
        return cursor.failAt(dim, "expected stride:size, joined by '.', or '-'");
      factors.push_back(f);
    }
  }
  return llvm::Error::success();
}

// "dense" or "16x2": tile rows and packing.
llvm::Error readLayout(const LineCursor& cursor, const Argument& a, isa::SignaturePort* port) {
  if (a.text == "dense") {
    port->layout = isa::Layout{true, 8, 1};
    return llvm::Error::success();
  }
  const auto [rows, packing] = a.text.split('x');
  if (rows.getAsInteger(10, port->layout.tile_rows) || packing.getAsInteger(10, port->layout.packing) ||
      port->layout.tile_rows < 1 || port->layout.packing < 1)
    return cursor.failAt(a, "expected dense, or rows and packing such as 16x2");
  port->layout.dense = false;
  return llvm::Error::success();
}

void localDims(isa::SignaturePort* port) {
  for (size_t d = 0; d < port->global_dims.size(); ++d) {
    int64_t shards = 1;
    if (!port->shards.empty())
      for (const isa::ShardFactor& f : port->shards[d])
        if (__builtin_mul_overflow(shards, f.size, &shards) || shards > (1 << 24)) shards = 1 << 24;
    port->local_dims.push_back((port->global_dims[d] + shards - 1) / shards);
  }
}

}  // namespace

llvm::Error Directives::port(const Context& c, isa::SignaturePort* port) {
  auto name = c.cursor.string(c.args[0]);
  if (!name) return name.takeError();
  port->name = *name;
  if (llvm::Error error = readType(c.cursor, c.args[1], port)) return error;
  auto place = c.cursor.spaceAddress(c.args[2]);
  if (!place) return place.takeError();
  std::tie(port->space, port->address) = *place;
  Argument layout;
  for (size_t i = 3; i < c.args.size(); ++i) {
    Argument key, value;
    if (!LineCursor::splitKey(c.args[i], &key, &value))
      return c.cursor.failAt(c.args[i], "expected shards=, layout=, alias= or loc=");
    if (key.text == "shards") {
      if (llvm::Error error = readShards(c.cursor, value, port)) return error;
    } else if (key.text == "layout") {
      layout = value;
    } else if (key.text == "alias") {
      auto n = c.cursor.numberIn(value, -1, 1 << 20);
      if (!n) return n.takeError();
      port->alias = static_cast<int>(*n);
    } else if (key.text == "loc") {
      auto text = c.cursor.string(value);
      if (!text) return text.takeError();
      port->loc = *text;
    } else {
      return c.cursor.failAt(key, "unknown key '" + key.text + "'");
    }
  }
  localDims(port);
  port->layout = isa::defaultLayout(port->element, port->local_dims);
  return layout.text.empty() ? llvm::Error::success() : readLayout(c.cursor, layout, port);
}

llvm::Error Directives::argument(const Context& c) { return port(c, &p_.args.emplace_back()); }
llvm::Error Directives::result(const Context& c) { return port(c, &p_.results.emplace_back()); }

}  // namespace tpu::assembly
