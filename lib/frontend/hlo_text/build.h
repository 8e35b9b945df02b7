// From HLO text to a module. Tuples are taken apart on the way: a value is an array or a list of values, loops carry arrays,
// the entry takes and gives arrays. Fusions, calls and the computations of asynchronous operations become part of their
// caller; asynchronous pairs become the operation that they bracket.
#pragma once
#include <functional>
#include <map>
#include <memory>

#include "llvm/ADT/DenseSet.h"
#include "syntax.h"
#include "tpu/hlo/builder.h"

namespace tpu::frontend::hlo_text {

/// A value as HLO's text has it, a string or anything else, as a string of MLIR with its quotes.
std::string stringOfMlir(llvm::StringRef value);

/// Computations become part of their callers, so a short text can stand for a program without end: one that grows to
/// more instructions than this is refused.
size_t mostInstructions(const Text& text);

class Build {
 public:
  Build(Cursor& cursor, const Text& text, hlo::Module& module, llvm::StringRef base, DiagnosticSink& sink)
      : c(cursor), text_(text), m(module), base_(base), sink_(sink), b(module, hlo::RegionId()), most_(mostInstructions(text)) {}
  bool run();

 private:
  using ValueId = hlo::ValueId;
  using OpId = hlo::OpId;
  using AttrKey = hlo::AttrKey;
  using Opcode = hlo::Opcode;
  using Ints = llvm::SmallVector<int64_t, 8>;

  /// The parts of a manual computation as the text has them: borders around a call.
  struct Manual {
    const Instruction* enter = nullptr;  // null where nothing enters
    std::vector<ValueId> operands;
    const Instruction* call = nullptr;
    std::vector<int64_t> order;  // which operand each argument of the call is
  };
  struct Val {
    ValueId v;                        // an array or a token
    std::vector<Val> elements;        // a tuple
    bool tuple = false;
    std::shared_ptr<Val> done;        // what the -done of an asynchronous operation gives
    std::shared_ptr<Manual> manual;   // inside a manual computation, before its body is known
    int64_t index = 0;                // manual: which operand's part
  };
  using Vals = std::vector<Val>;
  /// The instructions that have been built of the computation that is being built.
  struct Frame {
    const Computation* computation;
    Vals values;
    const Vals* parameters;
  };

  // build.cc: functions, computations, values
  bool entry();
  bool header();
  bool computation(const Computation& computation, const Vals& parameters, Val* out);
  bool instruction(Frame& frame, const Instruction& i);
  /// The instruction's tuple or array is the one that it says; true for asynchronous and manual values on their way.
  bool agrees(const Shape& shape, const Val& val);
  bool operands(Frame& frame, const Instruction& i, Vals* out);
  bool arrays(Frame& frame, const Instruction& i, llvm::SmallVectorImpl<ValueId>* out);
  const Computation* called(const Instruction& i, llvm::StringRef attribute);
  /// The region of an op, built from a computation on arguments of the given types.
  bool region(OpId op, const Computation& computation, llvm::ArrayRef<hlo::TypeId> types,
              const std::function<Vals(llvm::ArrayRef<ValueId>)>& parameters);
  hlo::TypeId typeOf(const Shape& shape);
  void leaves(const Shape& shape, std::vector<const Shape*>& out);
  /// False, with an error at `at`, where a value is no array: what stands inside of a manual computation's borders.
  bool leaves(const Val& val, const char* at, llvm::SmallVectorImpl<ValueId>& out);
  /// A value of this shape from arrays taken from the front.
  Val assemble(const Shape& shape, llvm::ArrayRef<ValueId>& arrays);
  hlo::LocId locOf(const Instruction& i);
  hlo::LocId textLoc(const char* at);
  bool fail(const Instruction& i, const llvm::Twine& text, Code code = Code::kSyntaxError) {
    return c.error(code, i.at, text);
  }

  // build_dispatch.cc: which function builds which operation
  using Builder = bool (Build::*)(Frame& frame, const Instruction& i, Val* out);
  /// Of a row of opcodes.def that names one; else null.
  static Builder builderOf(llvm::StringRef opcode);
  bool build(Frame& frame, const Instruction& i, Val* out);
  /// All operands, at least so many; as values, or as the arrays in them.
  bool someOperands(Frame& frame, const Instruction& i, size_t least, Vals* in);
  bool inlined(const Instruction& i, llvm::StringRef attribute, const Vals& in, Val* out);
  bool leavesOf(Frame& frame, const Instruction& i, llvm::SmallVectorImpl<ValueId>* values);
  bool buildTuple(Frame& frame, const Instruction& i, Val* out);
  bool buildElement(Frame& frame, const Instruction& i, Val* out);
  bool buildSame(Frame& frame, const Instruction& i, Val* out);
  bool buildAfterAll(Frame& frame, const Instruction& i, Val* out);
  bool buildBarrier(Frame& frame, const Instruction& i, Val* out);
  bool buildBitcast(Frame& frame, const Instruction& i, Val* out);
  bool buildCall(Frame& frame, const Instruction& i, Val* out);
  bool buildFusion(Frame& frame, const Instruction& i, Val* out);
  bool buildAsyncStart(Frame& frame, const Instruction& i, Val* out);
  bool buildCopyStart(Frame& frame, const Instruction& i, Val* out);
  bool buildDone(Frame& frame, const Instruction& i, Val* out);
  bool buildWhile(Frame& frame, const Instruction& i, Val* out);
  bool buildConditional(Frame& frame, const Instruction& i, Val* out);
  bool buildAllToAll(Frame& frame, const Instruction& i, Val* out);
  bool buildRng(Frame& frame, const Instruction& i, Val* out);
  // build_transfers.cc
  bool buildInfeed(Frame& frame, const Instruction& i, Val* out);
  bool buildOutfeed(Frame& frame, const Instruction& i, Val* out);
  bool buildSend(Frame& frame, const Instruction& i, Val* out);
  bool buildRecv(Frame& frame, const Instruction& i, Val* out);
  bool channel(const Instruction& i, OpId op, int64_t to_or_from_host);
  Val resultsOf(OpId op, const Shape& shape);

  // build_ops.cc: operations that are more than a row of opcodes.def
  bool simple(Frame& frame, const Instruction& i, Opcode opcode, const Shape& shape, Val* out);
  bool regions(const Instruction& i, OpId op, llvm::ArrayRef<ValueId> operands);
  bool constant(Frame& frame, const Instruction& i, Val* out);
  bool elidedConstant(const Instruction& i, Val* out);
  bool elements(const Instruction& i, Cursor& at, const Shape& shape, std::vector<uint8_t>* out);
  bool element(const Instruction& i, Cursor& at, ElementType type, uint8_t* out);
  bool bitcast(const Instruction& i, ValueId operand, const Shape& from, Val* out);
  bool whileLoop(const Instruction& i, const Val& state, Val* out);
  bool conditional(const Instruction& i, const Vals& in, Val* out);
  bool dynamicSlice(Frame& frame, const Instruction& i, Val* out);
  bool allToAll(const Instruction& i, llvm::ArrayRef<ValueId> in, Val* out);
  bool rng(const Instruction& i, llvm::ArrayRef<ValueId> in, Val* out);
  bool customCall(Frame& frame, const Instruction& i, Val* out);
  /// A request for a sharding; false where `target` is none or its text is not understood.
  bool request(const Instruction& i, llvm::StringRef target, ValueId in, Val* out);
  /// The comparator of an approximate top-k, a private function over pairs of elements.
  bool comparator(const Instruction& i, OpId op);
  bool enterManual(Frame& frame, const Instruction& i, Val* out);
  bool leaveManual(Frame& frame, const Instruction& i, Val* out);
  /// The part of a "-start" operation's shape that its "-done" gives.
  static const Shape& resultShape(const Instruction& i, llvm::StringRef opcode);
  bool started(Frame& frame, const Instruction& i, llvm::StringRef opcode, Val result, Val* out);

  // build_attributes.cc
  bool attributes(const Instruction& i, OpId op);
  bool window(const Instruction& i, OpId op, AttrKey size, AttrKey strides, AttrKey base, AttrKey dilation, bool reversal);
  bool convolutionLabels(const Instruction& i, OpId op);
  bool groups(const Instruction& i, OpId op);
  bool meshGroups(const Instruction& i, OpId op, llvm::StringRef text);
  bool mayList(const Instruction& i, int64_t devices);
  bool setInts(const Instruction& i, OpId op, llvm::StringRef name, AttrKey key, bool optional = true);
  bool setInt(const Instruction& i, OpId op, llvm::StringRef name, AttrKey key);
  void setBool(const Instruction& i, OpId op, llvm::StringRef name, AttrKey key, bool otherwise = false);
  bool setEnum(const Instruction& i, OpId op, llvm::StringRef name, AttrKey key, llvm::StringRef otherwise);

  // build_header.cc
  bool meshes();
  bool aliases(const Computation& entry);
  bool isPartitioned();
  std::string parameterName(const Instruction& i);
  llvm::SmallVector<llvm::StringRef, 4> splitTupleSharding(llvm::StringRef text, size_t leaves);
  /// One text of `frontend_attributes`, unquoted; empty where it is not there.
  std::string frontendAttribute(const Instruction& i, llvm::StringRef name);
  bool shardingText(const Instruction& i, llvm::StringRef text, Ints* ids);
  bool manualAxes(const Instruction& i, OpId op, llvm::StringRef text);

  // partitioned.cc
  int64_t devicesNamed() const;
  bool wholePorts();

  Cursor& c;
  const Text& text_;
  hlo::Module& m;
  const std::string base_;
  DiagnosticSink& sink_;
  hlo::Builder b;
  llvm::DenseSet<const Computation*> open_;  // being built: calls do not recurse
  const size_t most_;                        // instructions, before the program is taken for one without end
  size_t built_ = 0;                         // instructions, those of a computation once for each of its callers
  int64_t listed_ = 0;  // devices in groups spelled out so far
  std::map<uint32_t, hlo::ShardingId> result_shardings_;  // by value: xla.sdy.FuncResultSharding
};

}  // namespace tpu::frontend::hlo_text
