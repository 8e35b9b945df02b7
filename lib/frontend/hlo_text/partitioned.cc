// Whole arrays for a program that was already partitioned: its text has what one device holds.
//
// How a parameter is cut stands in its sharding; one without is the same on every device. The text does not say how
// results are cut. A result that may take the storage of a parameter is cut like it; any other is given as the
// pieces of all devices joined along its first dimension, scalars as they are on the first device.
#include "build.h"
#include "tpu/sharding/gspmd.h"

namespace tpu::frontend::hlo_text {

using llvm::StringRef;

// Old texts do not say how many devices run them: the groups do.
int64_t Build::devicesNamed() const {
  int64_t devices = m.num_partitions * m.num_replicas;
  for (const Computation& computation : text_.computations)
    for (const Instruction& i : computation.instructions)
      for (StringRef name : {"replica_groups", "source_target_pairs"}) {
        StringRef text = i.get(name);
        if (!text.starts_with("{")) continue;
        while (!(text = text.drop_until(isDigit)).empty()) {
          int64_t id;
          if (text.consumeInteger(10, id)) break;
          if (id >= devices && id < 1 << 20) devices = id + 1;
        }
      }
  return devices;
}

bool Build::wholePorts() {
  const int64_t devices = m.num_partitions;
  if (m.num_replicas != 1 || devices < 2 || !m.meshes.empty()) return true;
  hlo::Mesh mesh;
  mesh.name = "mesh";
  mesh.axes.push_back({"device", devices});
  m.meshes.push_back(mesh);
  const auto plain = [&](hlo::TypeId type) {
    hlo::Sharding s;
    s.mesh = hlo::MeshId(0);
    s.dims.resize(m.type(type).dims.size());
    return s;
  };
  const auto set = [&](hlo::Port& port, hlo::TypeId type, const hlo::Sharding& s) {
    hlo::Type whole = m.type(type);
    for (size_t d = 0; d < whole.dims.size(); ++d)
      if (__builtin_mul_overflow(whole.dims[d], sharding::product(s.dims[d].axes), &whole.dims[d]))
        return c.error(Code::kUnknownType, c.begin, "the whole of an array is too large");
    port.sharding = m.internSharding(s);
    port.global_type = m.internType(whole);
    return true;
  };
  hlo::Func& entry = m.funcs[m.entry.v];
  const auto args = m.region(entry.body).args;
  for (size_t k = 0; k < args.size(); ++k) {
    hlo::Port& port = entry.arg_ports[k];
    const hlo::TypeId type = m.value(args[k]).type;
    if (m.type(type).kind != hlo::TypeKind::kTensor) continue;
    hlo::Sharding s = plain(type);
    StringRef text = StringRef(port.attrs).split('"').second.split('"').first;
    if (sharding::gspmdDevices(text) > 0) {
      auto tiles = sharding::parseGspmd(mesh, text, m.loc(m.value(args[k]).loc));
      if (!tiles) {
        std::string why;
        for (const Diagnostic& d : takeDiagnostics(tiles.takeError())) why = d.text;
        return c.error(Code::kSyntaxError, c.begin, why);
      }
      for (size_t d = 0; d < s.dims.size() && d < tiles->dims.size(); ++d) s.dims[d].axes = tiles->dims[d];
    }
    port.attrs.clear();
    if (!set(port, type, s)) return false;
    m.value(args[k]).sharding = port.sharding;
  }
  for (size_t r = 0; r < entry.result_types.size(); ++r) {
    const hlo::TypeId type = entry.result_types[r];
    if (m.type(type).kind != hlo::TypeKind::kTensor) continue;
    hlo::Sharding s = plain(type);
    if (!s.dims.empty()) s.dims[0].axes.push_back({0, 1, devices});
    for (size_t k = 0; k < args.size(); ++k)
      if (entry.arg_ports[k].alias == static_cast<int>(r) && m.value(args[k]).type == type)
        s = m.sharding(entry.arg_ports[k].sharding);
    entry.result_ports[r].attrs.clear();
    if (!set(entry.result_ports[r], type, s)) return false;
  }
  return true;
}

}  // namespace tpu::frontend::hlo_text
