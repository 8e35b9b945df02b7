// Target, devices, code ranges, locations and the memory map. Signature ports and constants stand in ports.cc
// and constants.cc.
#include "directives.h"

#include "directive_context.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/target/chip.h"

namespace tpu::assembly {

llvm::Error Directives::handle(const LogicalLine& line, size_t at) {
  const LineCursor cursor(line, file_);
  const llvm::StringRef name = llvm::StringRef(line.text).substr(at).take_while(isWordChar);
  struct Row {
    llvm::StringRef name;
    llvm::Error (Directives::*handler)(const Context&);
    size_t least, most;
  };
  constexpr size_t kAny = SIZE_MAX;
  static const Row kRows[] = {
      {".target", &Directives::target, 1, 1},
      {".devices", &Directives::devices, 1, 1},
      {".device_order", &Directives::deviceOrder, 1, kAny},
      {".option", &Directives::option, 2, 2},
      {".autoloc", &Directives::setAutoloc, 1, 1},
      {".loc", &Directives::location, 2, 2},
      {".kernel", &Directives::kernel, 1, 1},
      {".endkernel", &Directives::endKernel, 0, 0},
      {".arg", &Directives::argument, 3, kAny},
      {".result", &Directives::result, 3, kAny},
      {".buffer", &Directives::buffer, 3, 5},
      {".const", &Directives::constant, 1, 1},
      {".u32", &Directives::words, 1, kAny},
      {".f32", &Directives::floats, 1, kAny},
      {".fill", &Directives::fill, 2, 2},
      {".base64", &Directives::base64, 1, 1},
      {".dma", &Directives::dma, 3, kAny},
      {".device_table", &Directives::deviceTable, 1, 1},
      {".row", &Directives::row, 0, kAny},
      {".memory", &Directives::memory, 1, 3},
      {".required", &Directives::required, 1, 3},
  };
  if (name == ".chip") {
    in_chip_ = true;
    chip_place_ = line.place(at);
    return llvm::Error::success();
  }
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    const Context c{cursor, cursor.arguments(at + name.size()), at};
    if (c.args.size() < row.least || c.args.size() > row.most)
      return cursor.failAt(at, "'" + name + "' takes " + (row.least == row.most ? "" : "at least ") +
                                   llvm::Twine(row.least) + " arguments, not " + llvm::Twine(c.args.size()));
    const bool data =
        name == ".u32" || name == ".f32" || name == ".fill" || name == ".base64" || name == ".dma";
    if (data && !constant_open_) return cursor.failAt(at, "'" + name + "' must follow '.const'");
    if (!data) constant_open_ = false;
    return (this->*row.handler)(c);
  }
  return cursor.failAt(at, "unknown directive '" + name + "'");
}

llvm::Error Directives::chipLine(const LogicalLine& line) {
  if (llvm::StringRef(line.text).trim() != ".endchip") {
    chip_text_ += line.text;
    chip_text_ += '\n';
    return llvm::Error::success();
  }
  in_chip_ = false;
  auto chip = target::parseChip(chip_text_, placeText(file_, chip_place_));
  if (!chip) return chip.takeError();
  p_.chip_json = chip->json;
  return llvm::Error::success();
}

// With a .chip block before it the target is of that chip; else a built-in one, or a file.
llvm::Error Directives::target(const Context& c) {
  auto text = c.cursor.string(c.args[0]);
  if (!text) return text.takeError();
  auto target =
      p_.chip_json.empty() ? target::parseTarget(*text) : target::targetFromDocument(*text, p_.chip_json);
  if (!target) {
    Diagnostic d = takeDiagnostics(target.takeError())[0];
    if (d.loc.empty()) return c.cursor.failAt(c.args[0], d.text);
    return fail(std::move(d));
  }
  const llvm::StringRef path = llvm::StringRef(*text).rsplit(':').first;
  if (files_read_ && p_.chip_json.empty() && path.ends_with(".json")) files_read_->push_back(path.str());
  p_.target = target->text;
  p_.chip_json = target->chip.json;
  return llvm::Error::success();
}

llvm::Error Directives::devices(const Context& c) {
  auto n = c.cursor.numberIn(c.args[0], 1, 1 << 24);
  if (!n) return n.takeError();
  p_.devices = *n;
  return llvm::Error::success();
}

llvm::Error Directives::deviceOrder(const Context& c) {
  for (const Argument& a : c.args) {
    auto n = c.cursor.numberIn(a, 0, 1 << 24);
    if (!n) return n.takeError();
    p_.device_order.push_back(*n);
  }
  return llvm::Error::success();
}

llvm::Error Directives::option(const Context& c) {
  auto key = c.cursor.string(c.args[0]), value = c.cursor.string(c.args[1]);
  if (!key) return llvm::joinErrors(key.takeError(), value.takeError());
  if (!value) return value.takeError();
  p_.options.emplace_back(*key, *value);
  return llvm::Error::success();
}

llvm::Error Directives::setAutoloc(const Context& c) {
  if (c.args[0].text != "on" && c.args[0].text != "off")
    return c.cursor.failAt(c.args[0], "expected on or off");
  autoloc_ = c.args[0].text == "on";
  return llvm::Error::success();
}

llvm::Error Directives::location(const Context& c) {
  auto n = c.cursor.number(c.args[0]);
  if (!n) return n.takeError();
  if (*n != static_cast<int64_t>(p_.locs.size()))
    return c.cursor.failAt(c.args[0], "the next location is " + llvm::Twine(p_.locs.size()));
  auto text = c.cursor.string(c.args[1]);
  if (!text) return text.takeError();
  p_.locs.push_back(*text);
  return llvm::Error::success();
}

llvm::Error Directives::kernel(const Context& c) {
  auto name = c.cursor.string(c.args[0]);
  if (!name) return name.takeError();
  if (in_kernel_) return c.cursor.failAt(c.at, "the kernel before this one has no '.endkernel'");
  in_kernel_ = true;
  p_.ranges.push_back({*name, static_cast<uint32_t>(p_.bundles.size()), 0});
  return llvm::Error::success();
}

llvm::Error Directives::endKernel(const Context& c) {
  if (!in_kernel_) return c.cursor.failAt(c.at, "'.endkernel' without '.kernel'");
  in_kernel_ = false;
  p_.ranges.back().end = static_cast<uint32_t>(p_.bundles.size());
  return llvm::Error::success();
}

llvm::Error Directives::buffer(const Context& c) {
  isa::PlacedBuffer b;
  auto name = c.cursor.string(c.args[0]);
  if (!name) return name.takeError();
  b.name = *name;
  auto place = c.cursor.spaceAddress(c.args[1]);
  if (!place) return place.takeError();
  std::tie(b.space, b.address) = *place;
  b.real_bytes = -1;
  for (size_t i = 2; i < c.args.size(); ++i) {
    Argument key, value;
    if (!LineCursor::splitKey(c.args[i], &key, &value))
      return c.cursor.failAt(c.args[i], "expected bytes=, real= or loc=");
    if (key.text == "loc") {
      auto text = c.cursor.string(value);
      if (!text) return text.takeError();
      b.loc = *text;
      continue;
    }
    if (key.text != "bytes" && key.text != "real")
      return c.cursor.failAt(key, "unknown key '" + key.text + "'");
    auto n = c.cursor.numberIn(value, 0, int64_t{1} << 50);
    if (!n) return n.takeError();
    (key.text == "bytes" ? b.bytes : b.real_bytes) = *n;
  }
  if (b.real_bytes < 0) b.real_bytes = b.bytes;
  p_.buffers.push_back(std::move(b));
  return llvm::Error::success();
}

llvm::Error Directives::deviceTable(const Context& c) {
  auto n = c.cursor.numberIn(c.args[0], 0, 1 << 20);
  if (!n) return n.takeError();
  p_.device_table_words = *n;
  return llvm::Error::success();
}

llvm::Error Directives::row(const Context& c) {
  if (static_cast<int64_t>(c.args.size()) != p_.device_table_words)
    return c.cursor.failAt(c.at,
                           "a row of the device table has " + llvm::Twine(p_.device_table_words) + " words");
  for (const Argument& a : c.args) {
    auto n = c.cursor.numberIn(a, INT32_MIN, UINT32_MAX);
    if (!n) return n.takeError();
    p_.device_table.push_back(static_cast<uint32_t>(*n));
  }
  return llvm::Error::success();
}

// hbm=, vmem=, smem= of .memory; flops=, hbm=, ici= of .required.
static llvm::Error readAmounts(const Directives::Context& c,
                               llvm::ArrayRef<std::pair<const char*, int64_t*>> keys) {
  for (const Argument& a : c.args) {
    Argument key, value;
    const bool has_key = LineCursor::splitKey(a, &key, &value);
    const auto* row =
        has_key ? llvm::find_if(keys, [&](const auto& k) { return key.text == k.first; }) : keys.end();
    if (row == keys.end())
      return c.cursor.failAt(a, llvm::Twine("expected ") + keys[0].first + "=, " + keys[1].first + "= or " +
                                    keys[2].first + "=");
    auto n = c.cursor.numberIn(value, 0, INT64_MAX);
    if (!n) return n.takeError();
    *row->second = *n;
  }
  return llvm::Error::success();
}

llvm::Error Directives::memory(const Context& c) {
  memory_stated_ = true;
  return readAmounts(c, {{"hbm", &p_.hbm_bytes}, {"vmem", &p_.vmem_bytes}, {"smem", &p_.smem_bytes}});
}

llvm::Error Directives::required(const Context& c) {
  return readAmounts(
      c,
      {{"flops", &p_.required_flops_bf16}, {"hbm", &p_.required_hbm_bytes}, {"ici", &p_.required_ici_bytes}});
}

// High-water marks of what the directives placed, where .memory does not state them.
void Directives::deriveMemory() {
  auto grow = [&](isa::Space space, int64_t end) {
    int64_t* mark = space == isa::Space::kHbm    ? &p_.hbm_bytes
                    : space == isa::Space::kVmem ? &p_.vmem_bytes
                    : space == isa::Space::kSmem ? &p_.smem_bytes
                                                 : nullptr;
    if (mark) *mark = std::max(*mark, end);
  };
  for (const isa::Constant& c : p_.constants) grow(c.space, c.address + static_cast<int64_t>(c.bytes.size()));
  for (const isa::PlacedBuffer& b : p_.buffers) grow(b.space, b.address + b.bytes);
  for (const auto* ports : {&p_.args, &p_.results})
    for (const isa::SignaturePort& port : *ports)
      grow(port.space, port.address + isa::layoutBytes(port.layout, port.element, port.local_dims));
  grow(isa::Space::kSmem, isa::kDeviceTableAddress + 4 * p_.device_table_words);
}

llvm::Error Directives::finish() {
  if (p_.target.empty()) return fail(Code::kMissingTarget, file_, "no '.target' line");
  if (in_kernel_)
    return fail(Code::kBadDirective, file_, "kernel '" + p_.ranges.back().name + "' has no '.endkernel'");
  if (!memory_stated_) deriveMemory();
  return llvm::Error::success();
}

}  // namespace tpu::assembly
