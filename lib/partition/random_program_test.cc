// The property: a partitioned random program equals the whole one, bit for bit. 500 programs from a fixed seed; PROGRAMS
// and SEED ask for others, SEED=fresh for ones that nobody has seen (the target random-programs).
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>

#include "equality_test_util.h"
#include "random_program_test_util.h"
#include "shrink_test_util.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/print.h"
#include "tpu/hlo/verify.h"

namespace tpu::partition {
namespace {

using hlo::Opcode;

uint64_t firstSeed() {
  const char* seed = std::getenv("SEED");
  if (!seed) return 1;
  if (llvm::StringRef(seed) != "fresh") return std::strtoull(seed, nullptr, 10);
  std::random_device device;
  return (uint64_t{device()} << 20) + device() % (1u << 20);
}

TEST(RandomPrograms, EqualTheWholeProgram) {
  const char* count = std::getenv("PROGRAMS");
  int programs = count ? std::atoi(count) : 500, failures = 0;
  uint64_t begin = firstSeed();
  std::cout << programs << " programs from SEED=" << begin << "\n";
  for (uint64_t seed = begin; seed < begin + programs && failures < 5; ++seed) {
    hlo::Module whole = randomProgram(seed, stepsOf(seed));
    if (compareModules(whole, {}, seed, 0).problem.empty()) continue;
    ++failures;
    hlo::Module least =
        shrink(whole, [&](const hlo::Module& m) { return !compareModules(m, {}, seed, 0).problem.empty(); });
    Comparison c = compareModules(least, {}, seed, 0);
    ADD_FAILURE() << "SEED=" << seed << ", shrunk to " << countOps(least) << " operations: " << c.problem
                  << hlo::toText(least) << hlo::toText(c.partitioned);
  }
}

/// The passes on collectives, each alone against none: the same values, and no byte more on the wires.
TEST(RandomPrograms, EveryPassOnCollectivesIsLegalAlone) {
  const std::vector<std::string> passes = {"share", "reassociate", "reduce-scatter", "hoist", "sink", "combine"};
  const char* count = std::getenv("PROGRAMS");
  int programs = count ? std::atoi(count) / 4 : 120;
  PartitionOptions none;
  none.without = passes;
  std::map<std::string, int> changed;
  int64_t before = 0, after = 0;
  for (uint64_t seed = firstSeed() + 5000, end = seed + programs; seed < end; ++seed) {
    hlo::Module whole = randomProgram(seed, stepsOf(seed));
    Comparison plain = compareModules(whole, none, seed, 0);
    ASSERT_EQ(plain.problem, "") << "SEED=" << seed;
    if (plain.collectives == 0) continue;
    std::string text = hlo::toText(plain.partitioned);
    for (const std::string& pass : passes) {
      PartitionOptions alone = none;
      llvm::erase(alone.without, pass);
      Comparison c = compareModules(whole, alone, seed, 0);
      EXPECT_EQ(c.problem, "") << "SEED=" << seed << " " << pass << hlo::toText(c.partitioned);
      // Bytes are counted in whole numbers per collective: one that stands for several is rounded down once.
      int64_t rounding = pass == "combine" ? static_cast<int64_t>(plain.collectives - c.collectives) : 0;
      EXPECT_LE(c.wire_bytes, plain.wire_bytes + rounding) << "SEED=" << seed << " " << pass;
      EXPECT_LE(c.collectives, plain.collectives) << "SEED=" << seed << " " << pass;
      changed[pass] += hlo::toText(c.partitioned) != text;
    }
    before += plain.wire_bytes;
    after += compareModules(whole, {}, seed, 0).wire_bytes;
  }
  for (const std::string& pass : passes) std::cout << pass << ": " << changed[pass] << " programs changed\n";
  std::cout << "wire bytes without " << before << ", with all " << after << "\n";
}

/// Every kind of operation that has a rule stands in some of the programs.
TEST(RandomPrograms, CoverAllKinds) {
  std::vector<bool> seen(1000, false);
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    hlo::Module m = randomProgram(seed, stepsOf(seed));
    llvm::Error sound = hlo::verify(m);
    EXPECT_FALSE(bool(sound)) << "SEED=" << seed << " " << errorText(std::move(sound)) << hlo::toText(m);
    hlo::walk(m, [&](hlo::OpId id) { seen[static_cast<size_t>(m.op(id).opcode)] = true; });
  }
  for (Opcode opcode :
       {Opcode::add, Opcode::select, Opcode::clamp, Opcode::convert, Opcode::transpose, Opcode::reshape, Opcode::slice,
        Opcode::pad, Opcode::concatenate, Opcode::reverse, Opcode::broadcast_in_dim, Opcode::reduce,
        Opcode::dot_general, Opcode::convolution, Opcode::dynamic_slice, Opcode::dynamic_update_slice, Opcode::gather,
        Opcode::scatter, Opcode::sort, Opcode::chlo_top_k, Opcode::reduce_window, Opcode::select_and_scatter,
        Opcode::cholesky, Opcode::triangular_solve, Opcode::fft, Opcode::rng_bit_generator, Opcode::case_, Opcode::if_,
        Opcode::while_, Opcode::sdy_manual_computation, Opcode::all_reduce, Opcode::all_gather, Opcode::reduce_scatter,
        Opcode::collective_permute, Opcode::sdy_sharding_constraint, Opcode::sdy_sharding_group,
        Opcode::sdy_propagation_barrier, Opcode::sdy_reshard, Opcode::optimization_barrier, Opcode::iota}) {
    EXPECT_TRUE(seen[static_cast<size_t>(opcode)]) << hlo::opInfo(opcode).name.str();
  }
}

/// Sums over devices turned into maxima: a fault that the property must see.
bool damaged(hlo::Module& m) {
  bool changed = false;
  hlo::walk(m, [&](hlo::OpId id) {
    if (m.op(id).opcode != Opcode::all_reduce) return;
    for (hlo::OpId inner : m.region(m.op(id).regions[0]).ops) {
      if (m.op(inner).opcode != Opcode::add) continue;
      m.op(inner).opcode = Opcode::maximum;
      changed = true;
    }
  });
  return changed;
}

bool faultIsSeen(const hlo::Module& whole, uint64_t seed) {
  Comparison c = compareModules(whole, {}, seed, 0);
  return damaged(c.partitioned) && !compareRuns(whole, c.partitioned, seed, 0).empty();
}

TEST(RandomPrograms, SeededFaultsAreSeen) {
  int faults = 0, seen = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    hlo::Module whole = randomProgram(seed, 12);
    Comparison c = compareModules(whole, {}, seed, 0);
    if (!damaged(c.partitioned)) continue;
    ++faults;
    seen += !compareRuns(whole, c.partitioned, seed, 0).empty();
  }
  EXPECT_GT(faults, 5);
  EXPECT_GT(seen, faults / 2);
}

TEST(RandomPrograms, AFailingProgramIsShrunk) {
  int shrunk = 0;
  for (uint64_t seed = 1; seed <= 80 && shrunk < 5; ++seed) {
    hlo::Module whole = randomProgram(seed, 25);
    if (countOps(whole) < 20 || !faultIsSeen(whole, seed)) continue;
    ++shrunk;
    hlo::Module least = shrink(whole, [&](const hlo::Module& m) { return faultIsSeen(m, seed); });
    EXPECT_TRUE(faultIsSeen(least, seed));
    EXPECT_LE(countOps(least), 20u) << hlo::toText(least);
  }
  EXPECT_GE(shrunk, 3);
}

}  // namespace
}  // namespace tpu::partition
