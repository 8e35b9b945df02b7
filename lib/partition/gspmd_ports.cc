// Strings of shardings on arguments and results.
#include "gspmd_ports.h"

namespace tpu::partition {

llvm::StringRef portSharding(llvm::StringRef attrs) {
  size_t at = attrs.find("mhlo.sharding");
  return at == llvm::StringRef::npos ? "" : attrs.drop_front(at).split('"').second.split('"').first;
}

std::string takePortSharding(std::string& attrs) {
  std::string text = portSharding(attrs).str();
  if (text.empty()) return text;
  size_t at = attrs.find("mhlo.sharding");
  size_t end = attrs.find('"', attrs.find('"', at) + 1) + 1;
  if (attrs.compare(end, 2, ", ") == 0) {
    end += 2;
  } else if (at >= 2 && attrs.compare(at - 2, 2, ", ") == 0) {
    at -= 2;
  }
  attrs.erase(at, end - at);
  return text;
}

}  // namespace tpu::partition
