// Targets: boxes of chips, which of their dimensions wrap, and the routes between chips.
#include <algorithm>

#include "builtin.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "tpu/support/diagnostics.h"
#include "tpu/target/chip.h"

namespace tpu::target {
namespace {

using Box = std::vector<int64_t>;

std::string boxText(llvm::ArrayRef<int64_t> box) {
  std::string text;
  for (int64_t d : box) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text;
}

int64_t volume(llvm::ArrayRef<int64_t> box) {
  int64_t n = 1;
  for (int64_t d : box) n *= d;
  return n;
}

Box sorted(Box box) {
  llvm::sort(box);
  return box;
}

// Whether the box lies in the pod in some orientation.
bool fitsPod(const Chip& chip, const Box& box) {
  const Box b = sorted(box), pod = sorted(chip.pod);
  for (size_t i = 0; i < b.size(); ++i)
    if (b[i] > pod[i]) return false;
  return true;
}

// Boxes that a provider sells, by rule: squares and 1:2 rectangles of powers of two in two dimensions; whole
// cubes of 4x4x4, or parts of one cube by halving, in three.
bool isSold(const Chip& chip, const Box& box) {
  const Box b = sorted(box);
  if (b.size() == 3) {
    if (llvm::all_of(b, [](int64_t d) { return d % 4 == 0; })) return true;
    return b[2] <= 4 &&
           llvm::all_of(b, [](int64_t d) { return llvm::isPowerOf2_64(static_cast<uint64_t>(d)); }) &&
           (b[0] > 1 || b[2] <= 2);
  }
  return llvm::all_of(b, [](int64_t d) { return llvm::isPowerOf2_64(static_cast<uint64_t>(d)); }) &&
         b.back() <= 2 * b.front();
}

bool wraps(const Chip& chip, int64_t length) {
  if (chip.wrap_rule == "length16") return length == 16;
  if (chip.wrap_rule == "cubes4") return length % 4 == 0;
  return chip.wrap_rule == "full" && length > 2;
}

Target makeTarget(Chip chip, int slices, Box box) {
  Target t;
  t.slices = slices;
  const bool sold = chip.wrap_rule == "none" || isSold(chip, box);
  const bool whole_cubes = llvm::all_of(box, [](int64_t d) { return d % 4 == 0; });
  for (int64_t d : box)
    t.wrap.push_back(sold && wraps(chip, d) && (chip.wrap_rule != "cubes4" || whole_cubes));
  t.text = (slices > 1 ? std::to_string(slices) + "x" : "") + chip.name + ":" + boxText(box);
  if (!sold && volume(box) > 1)
    t.notes.push_back(chip.name + ":" + boxText(box) + " is not sold; no wrap-around links are assumed");
  t.chip = std::move(chip);
  t.box = std::move(box);
  return t;
}

llvm::Error badTopology(llvm::StringRef text, const llvm::Twine& why) {
  return fail(Code::kBadTopology, "", "target '" + text + "': " + why);
}

llvm::Expected<Box> parseBox(llvm::StringRef whole, llvm::StringRef text, const Chip& chip) {
  Box box;
  llvm::SmallVector<llvm::StringRef, 4> parts;
  if (!text.empty()) text.split(parts, 'x');
  for (llvm::StringRef part : parts) {
    int64_t length = 0;
    if (part.getAsInteger(10, length) || length < 1)
      return badTopology(whole,
                         "'" + text + "' is not a box of chips such as " + boxText(Box(chip.ici_dims, 2)));
    box.push_back(length);
  }
  if (box.size() > static_cast<size_t>(chip.ici_dims))
    return badTopology(whole, chip.name + " has " + llvm::Twine(chip.ici_dims) + " dimensions");
  box.resize(chip.ici_dims, 1);
  if (!fitsPod(chip, box))
    return badTopology(whole, "the largest box of " + chip.name + " is " + boxText(chip.pod));
  return box;
}

// Takes "2x" off "2xv5e"; 1 where there is none.
int takeSlices(llvm::StringRef* name) {
  const llvm::StringRef digits = name->take_while(llvm::isDigit);
  int slices = 1;
  if (digits.empty() || digits.size() > 4 || !name->substr(digits.size()).starts_with("x") ||
      digits.getAsInteger(10, slices))
    return 1;
  if (name->size() == digits.size() + 1) return 1;
  *name = name->drop_front(digits.size() + 1);
  return slices;
}

void factorBoxes(int64_t chips, int dims, Box& prefix, std::vector<Box>& out) {
  if (dims == 1) {
    if (!prefix.empty() && chips < prefix.back()) return;
    prefix.push_back(chips);
    out.push_back(prefix);
    prefix.pop_back();
    return;
  }
  for (int64_t d = prefix.empty() ? 1 : prefix.back(); d <= chips; ++d) {
    if (chips % d) continue;
    prefix.push_back(d);
    factorBoxes(chips / d, dims - 1, prefix, out);
    prefix.pop_back();
  }
}

// Boxes of that many chips, lengths ascending, the squarest first.
std::vector<Box> boxesOf(const Chip& chip, int64_t chips) {
  std::vector<Box> boxes;
  Box prefix;
  if (chips < 1 || chips > volume(chip.pod)) return boxes;
  factorBoxes(chips, chip.ici_dims, prefix, boxes);
  llvm::erase_if(boxes, [&](const Box& box) { return !fitsPod(chip, box); });
  llvm::sort(boxes,
             [](const Box& a, const Box& b) { return a.back() != b.back() ? a.back() < b.back() : a < b; });
  return boxes;
}

// Position of a chip inside its slice, per dimension.
Box coordinates(const Target& target, int64_t chip) {
  Box at(target.box.size());
  for (size_t i = at.size(); i-- > 0;) at[i] = chip % target.box[i], chip /= target.box[i];
  return at;
}

}  // namespace

int64_t Target::numChips() const { return volume(box) * slices; }
int64_t Target::numDevices() const { return numChips() * chip.devicesPerChip(); }

llvm::Expected<Target> parseTarget(llvm::StringRef text) {
  const size_t colon = text.rfind(':');
  llvm::StringRef name = text.take_front(colon);
  const int slices = takeSlices(&name);
  auto chip = loadChip(name);
  if (!chip) return chip.takeError();
  const llvm::StringRef box_text = colon == llvm::StringRef::npos ? "" : text.substr(colon + 1);
  if (colon != llvm::StringRef::npos && box_text.empty()) return badTopology(text, "no topology after ':'");
  if (slices < 1) return badTopology(text, "no slices");
  auto box = parseBox(text, box_text, *chip);
  if (!box) return box.takeError();
  return makeTarget(std::move(*chip), slices, std::move(*box));
}

llvm::Expected<Target> targetFromDocument(llvm::StringRef text, llvm::StringRef chip_json) {
  if (chip_json.empty()) return parseTarget(text);
  auto chip = parseChip(chip_json, "chip description");
  if (!chip) return chip.takeError();
  return targetOfChip(text, *chip);
}

llvm::Expected<Target> targetOfChip(llvm::StringRef text, const Chip& chip) {
  auto [name, box_text] = text.rsplit(':');
  const int slices = takeSlices(&name);
  if (name != chip.name || slices < 1)
    return badTopology(text, "the document's chip description is of '" + chip.name + "'");
  auto box = parseBox(text, box_text, chip);
  if (!box) return box.takeError();
  return makeTarget(chip, slices, std::move(*box));
}

std::vector<std::string> topologiesFor(const Chip& chip, int64_t devices) {
  std::vector<std::string> texts;
  if (devices % chip.devicesPerChip()) return texts;
  for (const Box& box : boxesOf(chip, devices / chip.devicesPerChip()))
    texts.push_back(chip.name + ":" + boxText(box));
  return texts;
}

llvm::Expected<Target> defaultTarget(int64_t devices) {
  auto chip = loadChip("v5e");
  if (!chip) return chip.takeError();
  const std::vector<Box> boxes = boxesOf(*chip, devices);
  if (boxes.empty())
    return fail(Code::kBadTopology, "",
                llvm::Twine(devices) + " devices are no box of " + chip->name +
                    " chips; name one with --target, such as --target v5p:16x16x16");
  return makeTarget(std::move(*chip), 1, boxes.front());
}

int64_t neighbour(const Target& target, int64_t chip, int link) {
  const int dim = link / 2;
  if (dim >= static_cast<int>(target.box.size())) return -1;
  int64_t stride = 1;
  for (size_t i = dim + 1; i < target.box.size(); ++i) stride *= target.box[i];
  const int64_t length = target.box[dim], at = chip / stride % length;
  const int64_t to = link % 2 ? at - 1 : at + 1;
  if (to >= 0 && to < length) return chip + (to - at) * stride;
  if (!target.wrap[dim]) return -1;
  return chip + ((to + length) % length - at) * stride;
}

llvm::SmallVector<Hop, 8> route(const Target& target, int64_t from_chip, int64_t to_chip) {
  assert(from_chip / volume(target.box) == to_chip / volume(target.box) && "no links between slices");
  llvm::SmallVector<Hop, 8> hops;
  const Box from = coordinates(target, from_chip), to = coordinates(target, to_chip);
  int64_t at = from_chip;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const int64_t length = target.box[dim], up = ((to[dim] - from[dim]) % length + length) % length;
    const bool go_up = target.wrap[dim] ? up <= length - up : to[dim] > from[dim];
    const int64_t steps = target.wrap[dim] ? (go_up ? up : length - up) : std::abs(to[dim] - from[dim]);
    for (int64_t s = 0; s < steps; ++s) {
      const int link = static_cast<int>(2 * dim) + (go_up ? 0 : 1);
      hops.push_back({at, link});
      at = neighbour(target, at, link);
    }
  }
  assert(at == to_chip);
  return hops;
}

}  // namespace tpu::target
