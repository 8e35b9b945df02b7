# c = a b on one v5e: bf16 in, f32 out, SIZE a multiple of 1024.
#
# Blocks of 1024 x 1024 of c are computed one after another, each over steps of 512 of k. A step multiplies a block of a
# (1024 x 512) by a block of b (512 x 1024), in VMEM three times over: while one pair is used the next two are on their way, so that storing a
# finished block of c does not hold up the loads.
# The four matrix units hold four panels of 128 of k for one panel of 128 columns ("panel" loop, 8 per step); 64 groups of
# 16 rows stream past them, one every 16 cycles, all four units in the same bundle. Meanwhile, in the first eight groups, the
# weights of the next panel are pushed behind the running ones. Results are popped 16 groups after their rows went in, and
# added to c in VMEM in the order of k; the popping runs on across panels and steps and is drained once per block of c.
.equ SIZE, 4096
.equ BLOCKS, SIZE/1024
.equ STEPS, SIZE/512
.equ ROW, SIZE*32                 # bytes of a row of tiles: SIZE/128 tiles of 4 KiB
.equ A_ROW, 0                     # HBM places in rows of 512 bytes
.equ B_ROW, SIZE*SIZE*2/512
.equ C_ROW, SIZE*SIZE*4/512
.equ HALF, 0x100000               # VMEM: three blocks of a, each with its block of b behind it, then two of c
.equ PAIR, 2*HALF
.equ C0, 3*PAIR
.equ C_BYTES, 0x400000
.target v5e:1x1
.arg a, bf16[{SIZE},{SIZE}], hbm:0
.arg b, bf16[{SIZE},{SIZE}], hbm:{SIZE*SIZE*2}
.result c, f32[{SIZE},{SIZE}], hbm:{SIZE*SIZE*4}
.required flops={2*SIZE*SIZE*SIZE}, hbm={SIZE*SIZE*8}
.memory hbm={SIZE*SIZE*8}

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

# s1 rows of a   s2 place in c   s3 weights   s4 bodies left   s5 groups since the block began
# s6 c buffer    s7 its end      s8 panel     s9, s12, s11 pairs in VMEM (current, next, after next)
# s13 step of k  s14, s15 block column and row of c     s16, s17, s18 the same of the next load
# s19 steps left s22 descriptor of the next load        s24 its semaphore         s26 blocks begun
# p1 c has partial sums   p2 results are due   p3 weights are to be pushed   p7 rows are to go in   p5, p8 two steps, a step follow

# Starts the loads of step (s18, s17, s16) where `p` holds, and moves on to the step after it.
.macro load p
  smul s20, s18, {ROW*64/512} ; sshl s21, s16, 5
  smul s25, s16, {ROW*32/512} ; sshl s27, s17, 6
  nop 2
  sadd s20, s20, s21 ; sadd s25, s25, s27
  sadd s20, s20, {A_ROW} ; sadd s25, s25, {B_ROW}
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

.kernel matmul
  smov s9, 0 ; smov s12, {PAIR}
  smov s11, {2*PAIR}
  smov s16, 0 ; smov s17, 0
  smov s18, 0 ; smov s22, 1024
  smov s13, 0 ; smov s14, 0
  smov s15, 0 ; smov s24, 1
  smov s26, 0 ; smov s19, {BLOCKS*BLOCKS*STEPS}
  smov s6, {C0} ; pset p9, 1
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
  scmp.eq p10, s14, {BLOCKS} ; sadd s21, s21, {C_ROW}
  sadd s20, s20, 1504 ; sadd s21, s21, s25
  sst [s20+20], s21 ; @p10 smov s14, 0
  @p10 sadd s15, s15, 1 ; sxor s6, s6, {C0 ^ (C0+C_BYTES)}
  dma.start s20 ; scmp.gt p0, s19, 0
  @p0 br block
  nop 4
  sem.wait 16, {C_BYTES}
  scmp.ge p10, s26, 2
  @p10 sem.wait 17, {C_BYTES}
  halt
.endkernel
