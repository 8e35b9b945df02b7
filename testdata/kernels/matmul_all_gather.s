# Two matrix products on each chip of a 2x2, the second with weights that are gathered while the first one runs:
# c1 = a w1, c2 = a w2; a is cut by rows over the chips, w1 is whole everywhere, w2 is cut by rows of k.
#
# The product is that of matmul_bf16.s as a subroutine. Its panel loop (about 1024 cycles) has a hook for a companion: the
# all-gather of w2, a step program whose state is two counters. Half of every chip's part goes clockwise round the ring
# 0 - 1 - 3 - 2, the other half the other way, in blocks of 64 KiB; a step sends at most one block each way: in the first
# phase one of the own, later one that has arrived, if one has. What is left when the first product ends is drained.
.equ SIZE, 2048
.equ BLOCKS, SIZE/1024
.equ STEPS, SIZE/512
.equ ROW, SIZE*32                 # bytes of a row of tiles: SIZE/128 tiles of 4 KiB
.equ BYTES, SIZE*SIZE*2
.equ A_ROW, 0                     # HBM places in rows of 512 bytes
.equ W1_ROW, BYTES/512
.equ PART_ROW, 2*BYTES/512
.equ W2_ROW, 3*BYTES/512
.equ C1_ROW, 4*BYTES/512
.equ C2_ROW, 6*BYTES/512
.equ HALF, 0x100000               # VMEM: three blocks of a, each with its block of b behind it, then two of c
.equ PAIR, 2*HALF
.equ C0, 3*PAIR
.equ C_BYTES, 0x400000
.equ LOG, 4                       # a half part is 2^LOG blocks, each a row of tiles
.equ ITEMS, 3*16                  # blocks to send each way
.target v5e:2x2
.devices 4
.arg a, bf16[{4*SIZE},{SIZE}], hbm:0, shards=[1:4, -]
.arg w1, bf16[{SIZE},{SIZE}], hbm:{W1_ROW*512}
.arg w2, bf16[{SIZE},{SIZE}], hbm:{PART_ROW*512}, shards=[1:4, -]
.result c1, f32[{4*SIZE},{SIZE}], hbm:{C1_ROW*512}, shards=[1:4, -]
.result c2, f32[{4*SIZE},{SIZE}], hbm:{C2_ROW*512}, shards=[1:4, -]
.required flops={4*SIZE*SIZE*SIZE}, hbm={6*BYTES+BYTES/4}, ici={BYTES*3/4}
.memory hbm={8*BYTES}

# clockwise neighbour, the other one, place in the ring
.device_table 3
.row 1, 2, 0
.row 3, 0, 1
.row 0, 3, 3
.row 2, 1, 2

# Descriptors: loads of a at 1024, 1104 and 1184, of b 240 behind each, stores of c at 1504 and 1584. The blocks' places in HBM
# are written into them before each use.
.const smem:1024
.dma src=hbm:0, dst=vmem:{0*PAIR}, run=16384, count1=64, src_stride1={ROW}, dst_stride1=16384, dst_sem=0
.dma src=hbm:0, dst=vmem:{1*PAIR}, run=16384, count1=64, src_stride1={ROW}, dst_stride1=16384, dst_sem=1
.dma src=hbm:0, dst=vmem:{2*PAIR}, run=16384, count1=64, src_stride1={ROW}, dst_stride1=16384, dst_sem=2
.dma src=hbm:0, dst=vmem:{0*PAIR+HALF}, run=32768, count1=32, src_stride1={ROW}, dst_stride1=32768, dst_sem=0
.dma src=hbm:0, dst=vmem:{1*PAIR+HALF}, run=32768, count1=32, src_stride1={ROW}, dst_stride1=32768, dst_sem=1
.dma src=hbm:0, dst=vmem:{2*PAIR+HALF}, run=32768, count1=32, src_stride1={ROW}, dst_stride1=32768, dst_sem=2
.dma src=vmem:{C0}, dst=hbm:0, run=4096, count1=8, src_stride1=524288, dst_stride1=4096, count2=128, src_stride2=4096, dst_stride2={ROW}, src_sem=16
.dma src=vmem:{C0+C_BYTES}, dst=hbm:0, run=4096, count1=8, src_stride1=524288, dst_stride1=4096, count2=128, src_stride2=4096, dst_stride2={ROW}, src_sem=17
# One block clockwise (arrives at semaphore 5), one the other way (7), and the own part of w2 into its place.
.equ X, 1664
.equ Y, 1744
.equ OWN, 1824
.dma src=hbm:0, dst=hbm:0, run={ROW}, src_sem=4, dst_sem=5, device=0
.dma src=hbm:0, dst=hbm:0, run={ROW}, src_sem=6, dst_sem=7, device=0
.dma src=hbm:{PART_ROW*512}, dst=hbm:0, run={BYTES/4}, dst_sem=8

# s1 rows of a   s2 place in c   s3 weights   s4 bodies left   s5 groups since the block began
# s6 c buffer    s7 its end      s8 panel     s9, s12, s11 pairs in VMEM (current, next, after next)
# s13 step of k  s14, s15 block column and row of c     s16, s17, s18 the same of the next load
# s19 steps left s22 descriptor of the next load        s24 its semaphore         s26 blocks begun
# s28, s29, s30 rows of a, b, c in HBM    s31 return address    s0, s23 blocks sent clockwise, the other way
# p1 c has partial sums   p2 results are due   p3 weights are to be pushed   p7 rows are to go in   p5, p8 two steps, a step follow   p13 the companion has something to send

# Starts the loads of step (s18, s17, s16) where `p` holds, and moves on to the step after it.
.macro load p
  smul s20, s18, {ROW*64/512} ; sshl s21, s16, 5
  smul s25, s16, {ROW*32/512} ; sshl s27, s17, 6
  nop 2
  sadd s20, s20, s21 ; sadd s25, s25, s27
  sadd s20, s20, s28 ; sadd s25, s25, s29
  sst [s22+12], s20 ; sst [s22+252], s25
  sadd s21, s22, 240 ; sadd s16, s16, 1
  @p dma.start s22 ; scmp.eq p10, s16, {STEPS}
  @p dma.start s21 ; @p10 smov s16, 0 ; @p10 sadd s17, s17, 1
  scmp.eq p10, s17, {BLOCKS} ; sadd s22, s22, 80
  @p10 smov s17, 0 ; @p10 sadd s18, s18, 1
  scmp.eq p10, s22, 1264
  @p10 smov s22, 1024
.endm

# What is popped and added for one group of 16 rows; the other columns of these bundles are filled in below.
.macro weights g
  @p3 vld v4, [s3+{HALF+g*32768}] ; @p3 vld v5, [s3+{HALF+(8+g)*32768}] ; @p3 vld v6, [s3+{HALF+(16+g)*32768}]
  vadd.f32 v22, v22, v12 ; vadd.f32 v23, v23, v16 ; @p3 vld v7, [s3+{HALF+(24+g)*32768}]
.endm
.macro push g
  sadd s5, s5, 1 ; @p2 vst [s2], v22 ;
    @p3 vmatpush.bf16 mxu0, v4, 0, {g}, 0 ; @p3 vmatpush.bf16 mxu1, v5, 0, {g}, 0 ;
    @p3 vmatpush.bf16 mxu2, v6, 0, {g}, 0 ; @p3 vmatpush.bf16 mxu3, v7, 0, {g}, 0
  @p2 vst [s2+4096], v23 ; @p2 sadd s2, s2, 8192 ; scmp.ge p2, s5, 16
.endm
.macro begin
  @p2 vpop.mrf v10, mxu0 ; @p2 vpop.mrf v11, mxu1 ; @p1 vld v20, [s2] ; @p1 vld v21, [s2+4096] ; @!p1 vimm v20, 0 ; @!p1 vimm v21, 0
  @p2 vpop.mrf v12, mxu2 ; @p2 vpop.mrf v13, mxu3 ; vld v0, [s1] ; vld v1, [s1+4096] ; vld v2, [s1+8192]
  @p2 vpop.mrf v14, mxu0 ; @p2 vpop.mrf v15, mxu1 ; vld v3, [s1+12288]
  @p2 vpop.mrf v16, mxu2 ; @p2 vpop.mrf v17, mxu3 ; sadd s1, s1, 16384
  vadd.f32 v22, v20, v10 ; vadd.f32 v23, v21, v14
  nop
  vadd.f32 v22, v22, v11 ; vadd.f32 v23, v23, v15 ;
    vmatmul.bf16 mxu0, v0, 0 ; vmatmul.bf16 mxu1, v1, 0 ; vmatmul.bf16 mxu2, v2, 0 ; vmatmul.bf16 mxu3, v3, 0
.endm

# One step of the companion in one direction: the block goes out with descriptor `d`, its number is in `i`, what has
# arrived in semaphore `sem`. What a phase sends is the part of the chip at place (own - phase) mod 4 clockwise, (own + phase)
# mod 4 the other way; place i is chip i ^ (i >> 1). `half` is the first row of tiles of this direction within a part. Leaves p14 true while there is more to send.
.macro step i, d, sem, turn, half
  sem.read s21, sem ; sshr s20, i, {LOG} ; sand s25, i, {(1<<LOG)-1}
  scmp.lt p14, i, {ITEMS} ; scmp.eq p12, s20, 0
  sld s27, [72] ; smul s20, s20, turn
  scmp.lt p11, s21, {ROW} ; sadd s25, s25, half
  por p10, p11, p11 ; sshl s25, s25, {LOG+3}
  pmov p11, p12
  nop 2
  sadd s20, s20, s27
  sand s20, s20, 3 ; pxor p10, p10, p15
  sshr s21, s20, 1
  sxor s20, s20, s21
  sshl s20, s20, {LOG+1+LOG+3} ; por p11, p11, p10
  sadd s20, s20, s25 ; pand p11, p11, p14
  sadd s20, s20, {W2_ROW} ; sadd s25, s25, {PART_ROW}
  ssel s25, p12, s25, s20 ; pxor p10, p12, p15
  sst [{d+12}], s25 ; sst [{d+20}], s20
  pand p10, p10, p11
  @p10 sem.wait sem, {ROW}
  @p11 dma.start {d} ; @p11 sadd i, i, 1
.endm
.macro companion
  step s0, X, 5, -1, 0
  pmov p13, p14
  step s23, Y, 7, 1, 16
  por p13, p13, p14
.endm

  br main
  nop 4

.kernel matmul
matmul:
  smov s9, 0 ; smov s12, {PAIR}
  smov s11, {2*PAIR}
  smov s16, 0 ; smov s17, 0
  smov s18, 0 ; smov s22, 1024
  smov s13, 0 ; smov s14, 0
  smov s15, 0 ; smov s24, 1
  smov s19, {BLOCKS*BLOCKS*STEPS} ; pset p9, 1
  load p9
  load p9
  sem.wait 0, {PAIR}
  # The first weights, ahead of everything.
  .rept 8, g
  vld v4, [s9+{HALF+g*32768}] ; vld v5, [s9+{HALF+(8+g)*32768}] ; vld v6, [s9+{HALF+(16+g)*32768}]
  vld v7, [s9+{HALF+(24+g)*32768}]
  vmatpush.bf16 mxu0, v4, 0, {g}, 0 ; vmatpush.bf16 mxu1, v5, 0, {g}, 0 ; vmatpush.bf16 mxu2, v6, 0, {g}, 0 ; vmatpush.bf16 mxu3, v7, 0, {g}, 0
  .endr

block:
  # A buffer of c that is still being stored from two blocks ago is waited for.
  sand s20, s26, 1 ; scmp.ge p10, s26, 2
  sadd s20, s20, 16 ; smov s2, s6
  @p10 sem.wait s20, {C_BYTES} ; sadd s7, s6, {C_BYTES} ; smov s5, 0
  pset p1, 0 ; pset p2, 0
step:
  scmp.gt p8, s19, 1 ; scmp.gt p5, s19, 2
  load p5
  smov s8, 0
panel:
  pxor p10, p13, p15
  @p10 br compute
  nop 4
  companion
compute:
  scmp.eq p9, s8, 7 ; sadd s8, s8, 1
  pand p10, p9, p8 ; sshl s20, s8, 12
  @p10 sem.wait s24, {PAIR} ; sadd s3, s9, s20 ; smov s4, 8
  vlatch mxu0, 0 ; vlatch mxu1, 0 ; vlatch mxu2, 0 ; vlatch mxu3, 0 ; @p9 smov s3, s12 ; smov s1, s9
  pset p3, 1
body:
  .rept 7, g
  begin
  weights g
  nop
  vadd.f32 v22, v22, v13 ; vadd.f32 v23, v23, v17
  nop
  push g
  scmp.eq p6, s2, s7
  @p6 smov s2, s6 ; @p6 pset p1, 1
  .endr
  begin
  weights 7
  ssub s4, s4, 1
  vadd.f32 v22, v22, v13 ; vadd.f32 v23, v23, v17 ; scmp.gt p0, s4, 0
  @p0 br body
  push 7
  scmp.eq p6, s2, s7 ; pset p3, 0
  @p6 smov s2, s6 ; @p6 pset p1, 1

  scmp.lt p0, s8, 8
  @p0 br panel
  nop 4
  # The next step: the buffers change places.
  ssub s19, s19, 1 ; sadd s13, s13, 1
  smov s20, s11 ; smov s11, s9
  smov s9, s12 ; smov s12, s20
  sadd s24, s24, 1 ; scmp.lt p0, s13, {STEPS}
  scmp.eq p10, s24, 3
  @p0 br step
  @p10 smov s24, 0
  nop 3

  # The last 16 groups of this block of c.
  smov s4, 16 ; smov s13, 0
drain:
  vpop.mrf v10, mxu0 ; vpop.mrf v11, mxu1 ; vld v20, [s2] ; vld v21, [s2+4096]
  vpop.mrf v12, mxu2 ; vpop.mrf v13, mxu3
  vpop.mrf v14, mxu0 ; vpop.mrf v15, mxu1
  vpop.mrf v16, mxu2 ; vpop.mrf v17, mxu3
  vadd.f32 v22, v20, v10 ; vadd.f32 v23, v21, v14
  nop
  vadd.f32 v22, v22, v11 ; vadd.f32 v23, v23, v15
  nop
  vadd.f32 v22, v22, v12 ; vadd.f32 v23, v23, v16 ; ssub s4, s4, 1
  scmp.gt p0, s4, 0
  vadd.f32 v22, v22, v13 ; vadd.f32 v23, v23, v17
  @p0 br drain
  vst [s2], v22
  vst [s2+4096], v23 ; sadd s2, s2, 8192
  nop 2

  # Its store: where it goes in HBM, and which buffer it comes from.
  sand s20, s26, 1 ; smul s21, s15, {ROW*128/512}
  smul s20, s20, 80 ; sshl s25, s14, 6
  sadd s26, s26, 1 ; sadd s14, s14, 1
  scmp.eq p10, s14, {BLOCKS} ; sadd s21, s21, s30
  sadd s20, s20, 1504 ; sadd s21, s21, s25
  sst [s20+20], s21 ; @p10 smov s14, 0
  @p10 sadd s15, s15, 1 ; sxor s6, s6, {C0 ^ (C0+C_BYTES)}
  dma.start s20 ; scmp.gt p0, s19, 0
  @p0 br block
  nop 4
  ret s31
  nop 4
.endkernel

.kernel main
main:
  sld s20, [64] ; sld s21, [68]
  smov s26, 0 ; smov s6, {C0}
  smov s0, 0 ; smov s23, 0
  sld s25, [0] ; smov s28, {A_ROW}
  smov s29, {W1_ROW} ; smov s30, {C1_ROW}
  nop 3
  sst [{X+8}], s20 ; sst [{Y+8}], s21
  smul s25, s25, {BYTES/4/512} ; pset p13, 1
  nop 2
  sadd s25, s25, {W2_ROW}
  sst [{OWN+20}], s25
  dma.start {OWN}
  call s31, matmul
  nop 4
drain_companion:
  companion
  pmov p0, p13
  @p0 br drain_companion
  nop 4
  sem.wait 5, {ROW<<LOG}
  sem.wait 7, {ROW<<LOG}
  sem.wait 4, {ROW*ITEMS}
  sem.wait 6, {ROW*ITEMS}
  sem.wait 8, {BYTES/4}
  smov s29, {W2_ROW} ; smov s30, {C2_ROW}
  call s31, matmul
  nop 4
  sem.wait 16, {C_BYTES}
  sem.wait 17, {C_BYTES}
  halt
.endkernel
