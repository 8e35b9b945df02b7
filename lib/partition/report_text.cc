// The report as JSON lines and as text, and the signature.
#include <algorithm>
#include <map>

#include "report.h"
#include "tpu/hlo/infer.h"
#include "tpu/serial/json_writer.h"
#include "tpu/sharding/text.h"
#include "tpu/support/units.h"

namespace tpu::partition {

namespace {

void orNull(JsonWriter& w, llvm::StringRef key, const std::string& text) {
  w.key(key);
  if (text.empty()) {
    w.null();
  } else {
    w.string(text);
  }
}

void writeRecord(const hlo::Module& m, const CollectiveRecord& r, llvm::raw_ostream& os) {
  JsonWriter w(os);
  w.beginObject();
  w.field("type", "collective")
      .field("op", static_cast<int64_t>(r.op.v))
      .field("kind", r.kind)
      .field("bytes", r.bytes);
  w.field("wire_bytes", r.wire_bytes)
      .field("trips", r.trips)
      .key("axes")
      .strings(r.axes)
      .field("group_size", r.group_size);
  orNull(w, "loc", m.loc(m.op(r.op).loc).str());
  const hlo::Why none;
  const hlo::Why& why = r.why ? *r.why : none;
  orNull(w, "code", why.code);
  orNull(w, "asked_at", why.asked_at);
  orNull(w, "before", why.before);
  orNull(w, "after", why.after);
  orNull(w, "reason", why.reason);
  orNull(w, "remove_by", r.removal().str());
  w.field("time_ns", static_cast<int64_t>(r.time_ns + 0.5));
  w.endObject();
  os << '\n';
}

}  // namespace

namespace {

void writeRequest(const Request& r, llvm::raw_ostream& os) {
  JsonWriter w(os);
  w.beginObject().field("type", "request").field("what", r.what);
  orNull(w, "loc", r.loc);
  w.field("asked", r.asked).field("got", r.got).field("verdict", r.verdict);
  if (!r.sizes.empty()) w.field("sizes", r.sizes);
  w.endObject();
  os << '\n';
}

void writeFullCopy(const FullCopy& c, llvm::raw_ostream& os) {
  JsonWriter w(os);
  w.beginObject().field("type", "full_copy");
  orNull(w, "loc", c.loc);
  w.field("before", c.before).field("after", c.after).field("bytes", c.bytes).field("reason", c.reason);
  w.endObject();
  os << '\n';
}

}  // namespace

void writeJson(const hlo::Module& m, const PartitionReport& report, const Context& ctx, llvm::raw_ostream& os) {
  for (const CollectiveRecord& r : report.records) writeRecord(m, r, os);
  for (const Request& r : ctx.requests) writeRequest(r, os);
  for (const FullCopy& c : ctx.full_copies) writeFullCopy(c, os);
  JsonWriter w(os);
  w.beginObject().field("type", "summary").field("devices", report.devices);
  w.field("dot_flops", static_cast<int64_t>(report.dot_flops))
      .field("dot_flops_unpartitioned", static_cast<int64_t>(report.dot_flops_unpartitioned))
      .field("dot_flops_redundant", static_cast<int64_t>(report.redundantFlops()));
  w.field("collectives", static_cast<int64_t>(report.records.size())).field("wire_bytes", report.wire_bytes);
  w.key("count_by_kind").beginObject();
  for (const auto& [kind, n] : report.count_by_kind) w.field(kind, n);
  w.endObject().key("wire_bytes_by_kind").beginObject();
  for (const auto& [kind, n] : report.wire_by_kind) w.field(kind, n);
  w.endObject();
  w.field("full_copies", static_cast<int64_t>(ctx.full_copies.size()));
  w.field("arguments", report.arguments).field("results", report.results);
  w.field("argument_bytes", report.argument_bytes)
      .field("replicated_argument_bytes", report.replicated_argument_bytes);
  w.endObject();
  os << '\n';
}

void writeText(const hlo::Module& m, const PartitionReport& report, const Context& ctx, llvm::raw_ostream& os) {
  if (!ctx.explanation.empty()) {  // only one value was asked about
    os << ctx.explanation;
    return;
  }
  for (const Request& r : ctx.requests) {
    if (r.verdict == "honoured") continue;
    os << (r.loc.empty() ? "" : r.loc + ": ") << r.what << ' ' << r.verdict << ": asked for " << r.asked << ", got " << r.got;
    if (!r.sizes.empty()) os << ", shards of " << r.sizes;
    os << '\n';
  }
  if (report.records.empty()) {
    os << "no collectives\n";
    return;
  }
  // One entry per cause: kind, place, sharding before and after.
  struct Entry {
    const CollectiveRecord* first;
    int64_t count = 0, wire = 0;
    double time = 0;
  };
  std::vector<Entry> entries;
  std::map<std::string, size_t> index;
  for (const CollectiveRecord& r : report.records) {
    std::string key = r.kind + '\0' + m.loc(m.op(r.op).loc).str();
    if (r.why) key += '\0' + r.why->before + '\0' + r.why->after;
    auto [it, fresh] = index.try_emplace(key, entries.size());
    if (fresh) entries.push_back({&r});
    Entry& e = entries[it->second];
    ++e.count;
    e.wire += r.wire_bytes;
    e.time += r.time_ns;
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.wire > b.wire; });
  for (const Entry& e : entries) {
    const CollectiveRecord& r = *e.first;
    os << (m.op(r.op).loc ? m.loc(m.op(r.op).loc) : "unknown place") << ": ";
    if (e.count > 1) os << e.count << " x ";
    os << r.kind << " over ";
    for (size_t i = 0; i < r.axes.size(); ++i) os << (i ? "," : "") << r.axes[i];
    if (r.axes.empty()) os << "listed groups";
    os << " (" << plural(r.group_size, "device") << "): " << formatBytes(e.wire) << " sent per device, "
       << formatNs(e.time);
    if (r.trips > 1) os << ", in a loop of " << r.trips << " trips";
    os << '\n';
    if (!r.why) continue;
    if (!r.why->reason.empty()) os << "  why: " << r.why->reason << '\n';
    if (!r.why->before.empty()) os << "  from " << r.why->before << " to " << r.why->after << '\n';
    if (!r.why->asked_at.empty() && r.why->asked_at != m.loc(m.op(r.op).loc))
      os << "  asked for at " << r.why->asked_at << '\n';
    if (!r.removal().empty()) os << "  to remove it: " << r.removal() << '\n';
  }
}

std::string summaryText(const hlo::Module& m, const PartitionReport& r, const target::Target& target,
                        size_t warnings) {
  std::string mesh;
  for (const hlo::Mesh& x : m.meshes) {
    if (x.numDevices() == r.devices && mesh.empty() && r.devices > 1) mesh = sharding::printMesh(x);
  }
  std::string out = plural(r.devices, "device");
  if (!mesh.empty()) out += ": " + mesh;
  if (!target.text.empty()) out += " on " + target.text;
  out += "; " + plural(r.arguments, "argument") + ", " + plural(r.results, "result");
  if (m.stage != hlo::Stage::kSpmd) return out + "; not partitioned yet\n";
  out += "\n";
  if (r.devices > 1 || !r.records.empty()) {
    out += plural(r.records.size(), "collective") + ", " + formatBytes(r.wire_bytes) +
           " per device and step over the wires";
    if (warnings) out += "; " + plural(warnings, "warning");
    out += "\n";
  }
  return out;
}

void writeSignature(const hlo::Module& m, bool json, llvm::raw_ostream& os) {
  const hlo::Func& entry = m.func(m.entry);
  auto line = [&](const char* role, size_t i, const hlo::Port& p, hlo::TypeId local) {
    hlo::TypeId type = p.global_type ? p.global_type : local;
    std::string name = m.string(p.name).str(), sharding = sharding::print(m, p.sharding);
    if (json) {
      JsonWriter w(os);
      w.beginObject().field("type", role).field("index", static_cast<int64_t>(i)).field("name", name);
      w.field("tensor", hlo::typeText(m, type))
          .field("local", hlo::typeText(m, local))
          .field("sharding", sharding);
      if (p.alias >= 0) w.field("alias", static_cast<int64_t>(p.alias));
      if (p.donated) w.field("donated", true);
      w.endObject();
      os << '\n';
      return;
    }
    os << role << ' ' << i << ' ' << (name.empty() ? "-" : name) << ' ' << hlo::typeText(m, type) << ' '
       << sharding;
    if (p.global_type && p.global_type != local) os << " local " << hlo::typeText(m, local);
    if (p.alias >= 0) os << " donated to result " << p.alias;
    if (p.donated) os << " donated";
    os << '\n';
  };
  const std::vector<hlo::ValueId>& args = m.region(entry.body).args;
  for (size_t i = 0; i < args.size(); ++i) line("argument", i, entry.arg_ports[i], m.value(args[i]).type);
  for (size_t i = 0; i < entry.result_types.size(); ++i)
    line("result", i, entry.result_ports[i], entry.result_types[i]);
}

}  // namespace tpu::partition
