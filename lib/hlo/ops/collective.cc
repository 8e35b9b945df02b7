// Rules of collectives. Groups are replica_groups as the program listed them, or, in stage spmd, mesh axes.
#include "check.h"

namespace tpu::hlo {
namespace {

// The constraints on groups, under each op's numbers; none for ops that have no such constraint.
struct GroupLabels {
  Label unique, size, range, channel, groups;
};

// Ids are numbered from 0 without gaps: what the process grid is, and so which ids there are, no program
// says.
llvm::Error needGroups(OpCheck& c, const GroupLabels& labels, bool ragged, bool covers) {
  if (c.num(AttrKey::use_global_device_ids) && c.num(AttrKey::channel_id) <= 0)
    return c.fail(labels.channel, "use_global_device_ids needs a channel, channel_id is " +
                                      llvm::Twine(c.num(AttrKey::channel_id)));
  const Attr* attr = c.m.findAttr(c.id, AttrKey::replica_groups);
  if (!attr && labels.groups.list && !c.has(AttrKey::axes) && c.m.getString(c.id, AttrKey::extra).empty())
    return c.fail(labels.groups, "has no replica_groups");
  if (!attr) return llvm::Error::success();
  int64_t devices = c.m.num_partitions * c.m.num_replicas;
  std::vector<int64_t> ids;
  for (int64_t id : attr->groups.ids)
    if (id != -1 || !ragged) ids.push_back(id);
  llvm::sort(ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || (devices > 1 && ids[i] >= devices))
      return c.fail(labels.range,
                    "replica_groups name device " + llvm::Twine(ids[i]) + " of " + llvm::Twine(devices));
    if (i && ids[i] == ids[i - 1])
      return c.fail(labels.unique, "replica_groups name device " + llvm::Twine(ids[i]) + " twice");
  }
  const int64_t count = static_cast<int64_t>(ids.size());
  if (covers && count && ids.back() >= count)
    return c.fail(labels.range, "replica_groups name device " + llvm::Twine(ids.back()) + " among " +
                                    llvm::Twine(count) + " ids");
  if (c.m.stage == Stage::kHlo && covers && count && devices > 1 && c.num(AttrKey::use_global_device_ids) &&
      count != devices)
    return c.fail(labels.size,
                  "replica_groups name " + llvm::Twine(count) + " of " + llvm::Twine(devices) + " devices");
  return llvm::Error::success();
}

llvm::Error begin(OpCheck& c, const GroupLabels& labels, bool ragged = false, bool covers = true) {
  if (auto e = c.needTensors(1)) return e;
  return needGroups(c, labels, ragged, covers);
}

bool groupsKnown(OpCheck& c) {
  if (c.has(AttrKey::axes)) return true;
  const Attr* attr = c.m.findAttr(c.id, AttrKey::replica_groups);
  return attr && attr->groups.cols > 0;
}

// A result takes what the region folds to.
llvm::Error needFolded(OpCheck& c, size_t result, ElementType folded, Label label) {
  const Type& type = c.out(result);
  if (type.kind != TypeKind::kTensor || folded == type.element) return llvm::Error::success();
  return c.fail(label, "result is " + c.text(type) + ", the region yields " + elementTypeName(folded));
}

size_t index(int64_t dim) { return static_cast<size_t>(dim); }

}  // namespace

int64_t groupSize(const Module& module, OpId op) {
  if (const Attr* axes = module.findAttr(op, AttrKey::axes)) {
    int64_t size = 1;
    for (const AxisRef& axis : axes->axes) size *= axis.size;
    return size;
  }
  const Attr* groups = module.findAttr(op, AttrKey::replica_groups);
  if (groups && groups->groups.cols > 0) return groups->groups.cols;
  return module.num_partitions * module.num_replicas;
}

llvm::Error ruleAllReduce(OpCheck& c) {
  c.resultsBy(C(7), C(6), C(6));
  if (auto e = begin(c, {C(1), C(2), C(3), C(4), I(2)}, /*ragged=*/true)) return e;
  if (c.op.opcode == Opcode::all_reduce) {
    llvm::SmallVector<ElementType, 1> elements;
    if (auto e = c.needReducer(0, 1, C(5), elements)) return e;
    if (c.numOut() == 1)
      if (auto e = needFolded(c, 0, elements[0], C(7))) return e;
  }
  for (size_t i = 0; i < c.numIn(); ++i) {
    ElementType element = i < c.numOut() ? c.out(i).element : c.in(i).element;
    c.yield(element, c.in(i).dims);
  }
  return llvm::Error::success();
}

llvm::Error ruleAllGather(OpCheck& c) {
  c.resultsBy(C(6), C(6), C(6));
  if (auto e = begin(c, {C(2), C(3), C(4), C(5), I(3)})) return e;
  int64_t dim = c.num(AttrKey::all_gather_dim, -1);
  for (size_t i = 0; i < c.numIn(); ++i) {
    if (auto e = c.needDim(AttrKey::all_gather_dim, c.in(i).rank(), C(1))) return e;
    Type type = c.in(i);
    int64_t& size = type.dims[index(dim)];
    if (groupsKnown(c) && size != kDynamicDim) {
      if (__builtin_mul_overflow(size, groupSize(c.m, c.id), &size))
        return c.fail(C(6), "the result is too large");
    } else if (i < c.numOut() && c.out(i).rank() == type.rank()) {
      size = c.out(i).dims[index(dim)];
    }
    c.yield(std::move(type));
  }
  return llvm::Error::success();
}

llvm::Error ruleReduceScatter(OpCheck& c) {
  c.resultsBy(C(9), C(8), C(8));
  if (auto e = begin(c, {C(3), C(4), C(5), C(6), I(3)})) return e;
  int64_t dim = c.num(AttrKey::scatter_dimension, -1);
  llvm::SmallVector<ElementType, 1> elements;
  if (auto e = c.needReducer(0, 1, C(7), elements)) return e;
  for (size_t i = 0; i < c.numIn(); ++i) {
    if (auto e = c.needDim(AttrKey::scatter_dimension, c.in(i).rank(), C(2))) return e;
    Type type = c.in(i);
    int64_t& size = type.dims[index(dim)];
    if (groupsKnown(c) && size != kDynamicDim) {
      int64_t group = groupSize(c.m, c.id);
      if (size % group)
        return c.fail(C(1), "dimension of " + llvm::Twine(size) + " does not divide into " +
                                llvm::Twine(group) + " parts");
      size /= group;
    } else if (i < c.numOut() && c.out(i).rank() == type.rank()) {
      size = c.out(i).dims[index(dim)];
    }
    if (i < c.numOut() && c.out(i).kind == TypeKind::kTensor) {
      if (auto e = needFolded(c, i, elements[0], C(9))) return e;
      type.element = c.out(i).element;
    }
    c.yield(std::move(type));
  }
  return llvm::Error::success();
}

llvm::Error ruleAllToAll(OpCheck& c) {
  c.resultsBy(C(9), C(9), C(9));
  if (auto e = begin(c, {C(5), C(6), C(7), {}, I(5)})) return e;
  if (!c.has(AttrKey::axes))
    if (auto e = c.needAttr(AttrKey::split_count, I(4))) return e;
  int64_t count = c.num(AttrKey::split_count, groupSize(c.m, c.id));
  if (count < 1) return c.fail(C(4), "split_count must be positive");
  if (groupsKnown(c) && c.has(AttrKey::split_count) && count != groupSize(c.m, c.id))
    return c.fail(
        C(8), "split_count = " + llvm::Twine(count) + " for groups of " + llvm::Twine(groupSize(c.m, c.id)));
  for (size_t i = 0; i < c.numIn(); ++i) {
    if (auto e = c.needDim(AttrKey::split_dimension, c.in(i).rank(), C(1))) return e;
    if (auto e = c.needDim(AttrKey::concat_dimension, c.in(i).rank(), C(3))) return e;
    Type type = c.in(i);
    int64_t& split = type.dims[index(c.num(AttrKey::split_dimension))];
    if (split != kDynamicDim) {
      if (split % count)
        return c.fail(C(2), "dimension of " + llvm::Twine(split) + " does not divide into " +
                                llvm::Twine(count) + " parts");
      split /= count;
    }
    int64_t& concat = type.dims[index(c.num(AttrKey::concat_dimension))];
    if (concat != kDynamicDim && __builtin_mul_overflow(concat, count, &concat))
      return c.fail(C(9), "the result is too large");
    c.yield(std::move(type));
  }
  return llvm::Error::success();
}

llvm::Error ruleCollectivePermute(OpCheck& c) {
  c.resultsBy(C(5), C(5), C(5));
  if (auto e = begin(c, {{}, {}, {}, {}, {}})) return e;
  if (auto e = c.needAttr(AttrKey::source_target_pairs, I(2))) return e;
  const Groups& pairs = c.m.findAttr(c.id, AttrKey::source_target_pairs)->groups;
  if (pairs.rows > 0 && pairs.cols != 2) return c.fail(C(1), "source_target_pairs must have two columns");
  const int64_t devices = c.m.num_partitions * c.m.num_replicas;
  for (size_t column : {0, 1}) {
    std::vector<int64_t> ids;
    for (int64_t row = 0; row < pairs.rows; ++row)
      ids.push_back(pairs.ids[static_cast<size_t>(2 * row) + column]);
    llvm::sort(ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) return c.fail(C(4), "source_target_pairs hold a negative device");
      if (devices > 1 && ids[i] >= devices)
        return c.fail(
            C(4), "source_target_pairs name device " + llvm::Twine(ids[i]) + " of " + llvm::Twine(devices));
      if (i && ids[i] == ids[i - 1])
        return c.fail(C(2 + column),
                      llvm::Twine(column ? "two sources send to" : "two targets receive from") + " device " +
                          llvm::Twine(ids[i]));
    }
  }
  for (size_t i = 0; i < c.numIn(); ++i) c.yield(c.in(i));
  return llvm::Error::success();
}

llvm::Error ruleCollectiveBroadcast(OpCheck& c) {
  c.resultsBy(C(3), C(3), C(3));
  if (auto e = begin(c, {C(1), {}, C(2), {}, I(2)}, /*ragged=*/false, /*covers=*/false)) return e;
  for (size_t i = 0; i < c.numIn(); ++i) c.yield(c.in(i));
  return llvm::Error::success();
}

}  // namespace tpu::hlo
