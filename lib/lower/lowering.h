// The state of one lowering: where every value stands, the kernels emitted so far and the driver being written. The work
// is spread by topic: values.cc (buffers and forms), scalars.cc (rank 0), fusion.cc (elementwise clusters and reductions),
// contraction.cc (dots), movement.cc (slices, pads, transposes ...), control.cc (while, if, case), collectives.cc.
//
// A value's elements are a row-major sequence. A *form* is a buffer that holds that sequence under some dims in the default
// layout; reshape makes no code, its result shares the forms of its operand. A consumer asks for the dims it needs and gets a
// form that exists, a free view, or a relayout by DMA. Forms made inside a region end with it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "copy_plan.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "tpu/hlo/module.h"
#include "tpu/llo/builder.h"
#include "tpu/lower/lower.h"
#include "tpu/lower/spec.h"

namespace tpu::lower {

struct Form {
  int32_t buffer = -1;
  Dims dims;
};

/// A fused elementwise expression under construction.
struct Cluster {
  LoopSpec spec;
  std::vector<hlo::ValueId> inputs;  // parallel to spec.inputs
  std::map<std::pair<uint32_t, std::vector<int64_t>>, int> node_of;  // (value, view) -> node
  std::vector<uint32_t> slots;       // op slot -> row of locs
};

/// Collective groups as seen by the driver: rank and peers come from the device table.
struct GroupTable {
  int64_t size = 1;
  int rank_word = -1;            // device-table word: rank in the group
  std::vector<int> peer_words;   // [j-1]: device at rank (r + j) mod n
  std::vector<int> peer_ranks;   // [j-1]: that rank
  int ring_rank_word = -1;       // position on the physical ring, next and previous device on it
  int ring_next_word = -1, ring_prev_word = -1;
  int ready_sem = -1, recv_sem = -1, send_sem = -1;
  int ring_ready[2] = {-1, -1}, ring_recv[2] = {-1, -1}, ring_send[2] = {-1, -1};
};

/// The pairs of a permute as seen by the driver, by device-table words, and its semaphores.
struct PermuteTable {
  int target_word = -1, source_word = -1;
  int ready_sem = -1, recv_sem = -1, send_sem = -1;
};

/// Piece (rank of the peer) of `send`, n pieces of `bytes` or one piece for all, goes to slot (own rank) of `slots` on each
/// peer of the group.
struct Exchange {
  int32_t send;
  bool one_piece;
  int32_t slots;
  int64_t bytes;
};
/// Bytes [at, at + bytes) of every piece.
struct ExchangePart {
  const Exchange* of;
  int64_t at, bytes;
};
/// Buffers of one operand and result of an all-reduce, and their array's dims.
struct Reduced {
  int32_t src, out;
  Dims dims;
};
/// Bytes that one DMA may move, and one wait count.
constexpr int64_t kMostRun = int64_t{1} << 30;

/// Whether arrays of this element type can stand in the machine's memory.
bool supportedType(ElementType type);

class Lowering {
 public:
  Lowering(hlo::Module& module, const target::Target& target, const LowerOptions& options, DiagnosticSink& sink);
  llvm::Expected<llo::Module> run();
  /// True for ops that become code, a view, or nothing; elementwise ones by their types (canEmit).
  static bool lowers(hlo::Opcode opcode);

 private:
  // ---- values.cc
  llvm::Error declarePorts();
  void prepareRoots();
  hlo::ValueId root(hlo::ValueId v) const;
  const hlo::Type& typeOf(hlo::ValueId v) const { return m_.typeOf(v); }
  bool isScalar(hlo::ValueId v) const { return typeOf(v).dims.empty(); }
  llvm::StringRef locOf(hlo::OpId op) const { return m_.loc(m_.op(op).loc); }
  uint32_t internLoc(llvm::StringRef text);
  int32_t addBuffer(llo::Buffer b);
  /// A new HBM buffer of these dims in default layout (dense: linear 32-bit words).
  int32_t tempBuffer(ElementType type, llvm::ArrayRef<int64_t> dims, bool dense = false);
  int32_t scalarBuffer(ElementType type);
  /// Where the result of an op is written: the entry's result buffer when it is returned in this form, else a new one.
  int32_t resultBuffer(hlo::ValueId v, llvm::ArrayRef<int64_t> dims);
  void addForm(hlo::ValueId v, int32_t buffer, llvm::ArrayRef<int64_t> dims);
  /// Buffer of v under these dims (same number of elements).
  llvm::Expected<int32_t> form(hlo::ValueId v, llvm::ArrayRef<int64_t> dims);
  llvm::Expected<int32_t> form(hlo::ValueId v) { return form(v, typeOf(v).dims); }
  /// SMEM buffer of a rank-0 value (also of one-element arrays).
  llvm::Expected<int32_t> scalar(hlo::ValueId v);
  struct Scope;
  size_t scopeMark() const { return form_log_.size(); }
  void endScope(size_t mark);
  std::optional<llvm::ArrayRef<uint8_t>> splatBytes(hlo::ValueId v) const;

  // ---- copies (copies.cc)
  struct CopySide {
    int32_t buffer = -1;
    Dims dims;
    llvm::SmallVector<int64_t, 6> start, step;           // per array dim; empty: 0 and 1
    llvm::SmallVector<int, 6> iter;                      // array dim -> iteration dim, -1: fixed at start
    llvm::SmallVector<int32_t, 2> regs;                  // byte offsets added at run time
  };
  /// Copies the box of iteration dims `counts`; both buffers of one element type. Word copies where rows allow it.
  llvm::Error copyBox(llvm::ArrayRef<int64_t> counts, const CopySide& src, const CopySide& dst, llvm::StringRef loc);
  bool packedCopyAllowed(llvm::ArrayRef<int64_t> counts, const CopySide& src, const CopySide& dst) const;
  void emitNests(const std::vector<CopyNest>& nests, const CopySide& src, const CopySide& dst);
  void flatCopy(int32_t src, int32_t dst, int64_t bytes, int64_t src_offset = 0, int64_t dst_offset = 0);
  /// At most kMostRun bytes; the local semaphore counts them on arrival.
  void startCopy(int32_t src, int32_t dst, int64_t bytes, int64_t src_offset, int64_t dst_offset);
  /// Same elements, other dims: dst dims need not factor over src dims.
  llvm::Error relayout(int32_t src, llvm::ArrayRef<int64_t> src_dims, int32_t dst, llvm::ArrayRef<int64_t> dst_dims);
  bool sameBytes(ElementType type, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) const;
  /// 8/16-bit arrays as 32-bit ones of the same dims and back, exact.
  ElementType wideType(ElementType type) const;
  llvm::Expected<int32_t> widen(int32_t buffer, llvm::ArrayRef<int64_t> dims);
  llvm::Error narrow(int32_t wide, int32_t dst, llvm::ArrayRef<int64_t> dims);
  llvm::Error convertBuffer(int32_t src, int32_t dst, llvm::ArrayRef<int64_t> dims);
  llvm::Error fillBuffer(int32_t dst, llvm::ArrayRef<int64_t> dims, uint64_t bits);

  // ---- kernels (values.cc)
  template <class Spec, class Emit>
  llvm::Expected<int32_t> kernelFor(const Spec& spec, llvm::StringRef name, Emit emit);
  llvm::Expected<int32_t> loopKernel(const LoopSpec& spec, llvm::StringRef name);
  void callKernel(int32_t kernel, llvm::ArrayRef<int32_t> buffers, llvm::ArrayRef<uint32_t> slots);
  llo::CallArg bufferArg(int32_t buffer, llo::Scalar offset = {}) const;

  // ---- regions and ops
  llvm::Error lowerRegion(hlo::RegionId region, std::vector<hlo::ValueId>* results);
  llvm::Error lowerOp(hlo::OpId op);
  bool isEmpty(hlo::OpId op) const;
  using Handler = llvm::Error (Lowering::*)(hlo::OpId);
  static Handler handlerOf(hlo::Opcode opcode);
  llvm::Error lowerNothing(hlo::OpId op);
  llvm::Error lowerDeviceNumber(hlo::OpId op);
  llvm::Error refuseCall(hlo::OpId op);
  llvm::Error refuse(hlo::OpId op, const llvm::Twine& why = "");

  // ---- fusion.cc
  void planFusion(hlo::RegionId region);
  bool fusable(hlo::OpId op) const;
  bool isRoot(hlo::OpId op) const;
  llvm::Expected<int> clusterNode(Cluster& c, hlo::ValueId v, llvm::ArrayRef<int64_t> dims);
  int clusterInput(Cluster& c, hlo::ValueId v, llvm::ArrayRef<int64_t> dims);
  llvm::Expected<std::vector<int32_t>> clusterInputs(const Cluster& c);
  llvm::Error lowerElementwise(hlo::OpId op);
  llvm::Error lowerReduce(hlo::OpId op);
  llvm::Error reduceBuffers(hlo::OpId op, ReduceSpec spec, std::vector<int32_t> inputs, llvm::ArrayRef<uint32_t> slots);
  void readPartial(const hlo::Op& op, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int32_t> outs, ReduceSpec& spec,
                   std::vector<int32_t>& inputs);
  llvm::Error lowerEmptyReduce(hlo::OpId op);
  llvm::Error lowerConstant(hlo::OpId op);
  llvm::Expected<std::vector<int>> regionExpr(hlo::RegionId region, std::vector<ExprNode>& nodes);
  ExprNode opNode(hlo::OpId op, llvm::ArrayRef<int> args);

  // ---- scalars.cc
  bool driverScalar(hlo::OpId op) const;
  llvm::Error lowerDriverScalar(hlo::OpId op);
  llo::S loadScalar(int32_t smem);
  void storeScalar(int32_t smem, llo::S value);
  llo::S clampIndex(hlo::ValueId index, int64_t limit, llvm::Error& err);

  // ---- contraction.cc
  llvm::Error lowerDot(hlo::OpId op);
  llvm::Expected<int32_t> permuted(hlo::ValueId v, llvm::ArrayRef<int64_t> perm, llvm::ArrayRef<int64_t> dims_after);

  // ---- movement.cc
  llvm::Error lowerTranspose(hlo::OpId op);
  llvm::Error transposeInto(int32_t src, llvm::ArrayRef<int64_t> src_dims, llvm::ArrayRef<int64_t> perm, int32_t dst);
  llvm::Error lowerSlice(hlo::OpId op);
  llvm::Error lowerPad(hlo::OpId op);
  llvm::Error lowerConcatenate(hlo::OpId op);
  llvm::Error lowerReverse(hlo::OpId op);
  llvm::Error lowerDynamicSlice(hlo::OpId op);
  llvm::Error lowerDynamicUpdateSlice(hlo::OpId op);
  llvm::Error dynamicBox(hlo::OpId op, int32_t array, llvm::ArrayRef<int64_t> dims, int32_t box, llvm::ArrayRef<int64_t> box_dims,
                         llvm::ArrayRef<hlo::ValueId> starts, bool write);
  bool mayTake(hlo::ValueId v, hlo::RegionId region, int32_t buffer) const;

  // ---- control.cc
  llvm::Error lowerWhile(hlo::OpId op);
  llvm::Error lowerBranch(hlo::OpId op);
  llvm::Error copyValue(hlo::ValueId from, int32_t to);
  int32_t ownBuffer(hlo::ValueId like);

  // ---- groups.cc
  llvm::Expected<GroupTable*> groupTable(hlo::OpId op);
  int deviceWord(const std::vector<uint32_t>& per_device);
  std::vector<std::vector<int64_t>> groupsOf(hlo::OpId op) const;
  std::vector<int64_t> ringOrder(const std::vector<int64_t>& group) const;

  // ---- collectives.cc
  llvm::Error lowerAllReduce(hlo::OpId op);
  llvm::Error lowerAllGather(hlo::OpId op);
  llvm::Error lowerReduceScatter(hlo::OpId op);
  llvm::Error lowerAllToAll(hlo::OpId op);
  llvm::Error lowerPermute(hlo::OpId op);
  void exchange(const GroupTable& g, llvm::ArrayRef<Exchange> all);
  void exchangeParts(const GroupTable& g, llvm::ArrayRef<ExchangePart> parts, int64_t total);
  llvm::Error reduceBuffer(hlo::OpId op, GroupTable& g, ElementType type, const Reduced& part);
  llvm::Error reducePacked(hlo::OpId op, GroupTable& g, ElementType type, llvm::ArrayRef<Reduced> parts);
  llvm::Error combineSlots(hlo::OpId op, hlo::RegionId region, int32_t slots, int64_t n, ElementType type,
                           llvm::ArrayRef<int64_t> dims, int32_t dst);
  llvm::Error unstack(int32_t slots, int64_t n, llvm::ArrayRef<int64_t> piece, int32_t out, llvm::ArrayRef<int64_t> dims, int64_t axis, llvm::StringRef loc);
  llvm::Error restack(int32_t slots, int64_t n, llvm::ArrayRef<int64_t> piece, int32_t array, llvm::ArrayRef<int64_t> dims, int64_t axis,
                      llvm::StringRef loc, bool gather);
  llvm::Error ringAllReduce(hlo::OpId op, GroupTable& g, int32_t src, int32_t dst, ElementType type, int64_t bytes);

  hlo::Module& m_;
  const target::Target& target_;
  const LowerOptions& options_;
  DiagnosticSink& sink_;
  llo::Module out_;
  llo::CodeBuilder b_;
  std::map<std::string, int32_t> kernels_;
  std::map<std::string, int> kernel_names_;
  llvm::StringMap<uint32_t> loc_ids_;
  std::vector<hlo::ValueId> root_;                     // value -> value whose forms it shares
  std::vector<int> uses_;                              // root value -> number of uses
  std::vector<std::vector<Form>> forms_;               // by root value
  std::vector<int32_t> scalars_;                       // by root value: SMEM buffer or -1
  std::vector<std::pair<uint32_t, bool>> form_log_;    // (root, is scalar) in order of creation
  std::vector<int> result_of_;                         // root value -> entry result it is, -1
  std::vector<int32_t> result_buffers_;                // entry result -> buffer
  std::vector<hlo::OpId> cluster_of_;                  // op -> root op of its cluster; none: not fused away
  std::map<std::string, GroupTable> groups_;
  std::map<std::vector<uint32_t>, PermuteTable> permutes_;  // by target of each device
  int local_sem_ = -1;
  double trips_ = 1;                                   // of the loops around, where known
};

}  // namespace tpu::lower
