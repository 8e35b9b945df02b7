# Sum of one f32 array per chip over the four chips of a 2x2, each getting the whole sum: ROWS rows of 128 words.
#
# The chips form a ring 0 - 1 - 3 - 2. One half of the array (x) goes clockwise, the other (y) the other way round, so that
# all links carry data in both directions. Each half is cut into four chunks, one per chip, each chunk into BLOCKS blocks of
# 64 KiB. In the first three phases a block comes into VMEM, the chip's own block is added, and the sum goes on; what the
# third phase completes goes into the result of the next chip as well as the own, and in three more phases from result to
# result. Nothing received is ever written over, so no chip has to ask before it sends; chips may start at any time.
#
# For the chip at place p of the ring, phase t: chunk (p - t - 1) mod 4 of x arrives, chunk (p + t + 1) mod 4 of y.
.equ ROWS, 131072
.equ BLOCK, 65536                 # bytes
.equ BLOCK_ROWS, BLOCK/512
.equ BLOCKS, ROWS/(8*BLOCK_ROWS)  # of a chunk
.equ HALF, ROWS/2                 # first row of y
.equ SUM, ROWS                    # HBM row of the result
.equ BYTES, ROWS*512
.equ RX, 0                        # VMEM: a place for every block received in the first three phases
.equ RY, 3*BLOCKS*BLOCK
.equ LX, 6*BLOCKS*BLOCK           # and four places for own blocks, of x and of y
.equ LY, LX+4*BLOCK
.equ AHEAD, 8                     # first blocks sent before anything has come
.target v5e:2x2
.devices 4
.arg x, f32[{4*ROWS},128], hbm:0, shards=[1:4, -]
.result sum, f32[{ROWS},128], hbm:{BYTES}
.required hbm={2*BYTES}, ici={BYTES*3/2}
.memory hbm={2*BYTES}, vmem={LY+4*BLOCK}

# clockwise neighbour, the other one, place in the ring
.device_table 3
.row 1, 2, 0
.row 3, 0, 1
.row 0, 3, 3
.row 2, 1, 2

# Descriptors: own block to the neighbour, own block to VMEM, sum to the neighbour's VMEM, sum to the neighbour's
# result, sum to the own result, result to the neighbour's result; for x, then for y 480 bytes behind.
# Semaphores: 0, 1 own blocks; 2, 3 sends; 4, 5 own results; 8.. arrivals of x by phase, 16.. of y.
.equ FIRST, 1024
.equ OWN, FIRST+80
.equ ON, FIRST+160
.equ LAST, FIRST+240
.equ KEEP, FIRST+320
.equ PASS, FIRST+400
.equ Y, 480
.const smem:{FIRST}
.dma src=hbm:0, dst=vmem:0, run={BLOCK}, src_sem=2, dst_sem=8, device=0
.dma src=hbm:0, dst=vmem:0, run={BLOCK}, dst_sem=0
.dma src=vmem:0, dst=vmem:0, run={BLOCK}, src_sem=2, dst_sem=9, device=0
.dma src=vmem:0, dst=hbm:0, run={BLOCK}, src_sem=2, dst_sem=11, device=0
.dma src=vmem:0, dst=hbm:0, run={BLOCK}, dst_sem=4
.dma src=hbm:0, dst=hbm:0, run={BLOCK}, src_sem=2, dst_sem=12, device=0
.dma src=hbm:0, dst=vmem:0, run={BLOCK}, src_sem=3, dst_sem=16, device=0
.dma src=hbm:0, dst=vmem:0, run={BLOCK}, dst_sem=1
.dma src=vmem:0, dst=vmem:0, run={BLOCK}, src_sem=3, dst_sem=17, device=0
.dma src=vmem:0, dst=hbm:0, run={BLOCK}, src_sem=3, dst_sem=19, device=0
.dma src=vmem:0, dst=hbm:0, run={BLOCK}, dst_sem=5
.dma src=hbm:0, dst=hbm:0, run={BLOCK}, src_sem=3, dst_sem=20, device=0

# s1 phase   s2 block of it   s3 place in VMEM (row offset from RX or RY)   s4 place in the ring
# s5, s6 row in the array of the block of x, y that arrives   s7, s8 of the own block that is loaded next   s9, s10 first blocks
# s11 phase, s12 block, s13 slot of the own block that is loaded next   s14 slot of the one that is used
# s20.. scratch

# sd = the row of block `block` of the chunk that arrives in phase `phase`: of x, of y.
.macro rows sx, sy, phase, block
  ssub sx, s4, phase ; sadd sy, s4, phase
  ssub sx, sx, 1 ; sadd sy, sy, 1
  sand sx, sx, 3 ; sand sy, sy, 3
  smul sx, sx, {BLOCKS*BLOCK_ROWS} ; smul sy, sy, {BLOCKS*BLOCK_ROWS}
  smul s20, block, {BLOCK_ROWS}
  nop 2
  sadd sx, sx, s20 ; sadd sy, sy, s20
  sadd sy, sy, {HALF}
.endm

# Starts the load of the next own blocks where predicate `p` holds.
.macro load_own p
  rows s7, s8, s11, s12
  sshl s21, s13, 7
  sadd s22, s21, {LX/512} ; sadd s23, s21, {LY/512}
  sst [{OWN+12}], s7 ; sst [{OWN+20}], s22
  sst [{OWN+Y+12}], s8 ; sst [{OWN+Y+20}], s23
  @p dma.start {OWN} ; sadd s12, s12, 1 ; sadd s13, s13, 1
  @p dma.start {OWN+Y} ; sand s13, s13, 3 ; scmp.eq p14, s12, {BLOCKS}
  @p14 smov s12, 0 ; @p14 sadd s11, s11, 1
.endm

# Sends the next own block of the first phase where `p` holds: the chunk of the chip's own place.
.macro send_first p
  sst [{FIRST+12}], s9 ; sst [{FIRST+Y+12}], s10
  sst [{FIRST+20}], s15 ; sst [{FIRST+Y+20}], s16
  @p dma.start {FIRST} ; sadd s9, s9, {BLOCK_ROWS} ; sadd s10, s10, {BLOCK_ROWS}
  @p dma.start {FIRST+Y} ; sadd s15, s15, {BLOCK_ROWS} ; sadd s16, s16, {BLOCK_ROWS}
.endm

# The block at [s24] = what came there + the own block at [s25].
.macro add_block
  .rept 16, g
  vld v{2*g}, [s24+{4096*g}] ; vld v{2*g+1}, [s25+{4096*g}]
  .endr
  .rept 16, g
  vadd.f32 v{2*g}, v{2*g}, v{2*g+1}
  .endr
  .rept 16, g
  vst [s24+{4096*g}], v{2*g}
  .endr
.endm

.kernel all_reduce
  sld s4, [72] ; sld s20, [64]
  sld s21, [68]
  nop 6
  sst [{FIRST+8}], s20 ; sst [{ON+8}], s20
  sst [{LAST+8}], s20 ; sst [{PASS+8}], s20
  sst [{FIRST+Y+8}], s21 ; sst [{ON+Y+8}], s21
  sst [{LAST+Y+8}], s21 ; sst [{PASS+Y+8}], s21

  # The first chunk to send is that of the own place.
  smul s9, s4, {BLOCKS*BLOCK_ROWS}
  smov s15, {RX/512} ; smov s16, {RY/512}
  nop 2
  sadd s10, s9, {HALF} ; smov s17, 0
  pset p1, 1 ; smov s11, 0
  smov s12, 0 ; smov s13, 0
first:
  send_first p1
  sadd s17, s17, 1
  scmp.lt p0, s17, {AHEAD}
  scmp.lt p2, s17, {BLOCKS}
  pand p0, p0, p2
  @p0 br first
  nop 4
  load_own p1
  load_own p1

  smov s1, 0 ; smov s2, 0
  smov s3, 0 ; smov s14, 0
phase:
  # Semaphores of this phase and of what it sends.
  sadd s18, s1, 8 ; sadd s19, s1, 16
  sadd s20, s1, 9 ; sadd s21, s1, 17
  sshl s20, s20, 16 ; sshl s21, s21, 16
  sor s20, s20, 2 ; sor s21, s21, 3
  sst [{ON+4}], s20 ; sst [{ON+Y+4}], s21
  scmp.eq p3, s1, 2 ; scmp.ne p4, s1, 2
block:
  scmp.lt p2, s11, 3 ; scmp.lt p1, s17, {BLOCKS}
  load_own p2
  send_first p1
  sadd s17, s17, 1
  rows s5, s6, s1, s2

  # x
  sem.wait 0, {BLOCK} ; sshl s24, s3, 9 ; sshl s25, s14, 16
  sem.wait s18, {BLOCK} ; sadd s24, s24, {RX} ; sadd s25, s25, {LX}
  add_block
  sadd s20, s3, {RX/512} ; sadd s21, s5, {SUM}
  sadd s22, s20, {BLOCKS*BLOCK_ROWS}
  sst [{ON+12}], s20 ; sst [{ON+20}], s22
  sst [{LAST+12}], s20 ; sst [{LAST+20}], s21
  sst [{KEEP+12}], s20 ; sst [{KEEP+20}], s21
  @p4 dma.start {ON}
  @p3 dma.start {LAST}
  @p3 dma.start {KEEP}

  # y
  sem.wait 1, {BLOCK} ; sshl s24, s3, 9 ; sshl s25, s14, 16
  sem.wait s19, {BLOCK} ; sadd s24, s24, {RY} ; sadd s25, s25, {LY}
  add_block
  sadd s20, s3, {RY/512} ; sadd s21, s6, {SUM}
  sadd s22, s20, {BLOCKS*BLOCK_ROWS}
  sst [{ON+Y+12}], s20 ; sst [{ON+Y+20}], s22
  sst [{LAST+Y+12}], s20 ; sst [{LAST+Y+20}], s21
  sst [{KEEP+Y+12}], s20 ; sst [{KEEP+Y+20}], s21
  @p4 dma.start {ON+Y}
  @p3 dma.start {LAST+Y}
  @p3 dma.start {KEEP+Y}

  sadd s2, s2, 1 ; sadd s3, s3, {BLOCK_ROWS}
  sadd s14, s14, 1 ; scmp.lt p0, s2, {BLOCKS}
  @p0 br block
  sand s14, s14, 3
  nop 3
  sadd s1, s1, 1 ; smov s2, 0
  scmp.lt p0, s1, 3
  @p0 br phase
  nop 4

  # From result to result: the chunks arrive one place further round than in the phase before.
gather:
  sadd s18, s1, 8 ; sadd s19, s1, 16
  sadd s20, s1, 9 ; sadd s21, s1, 17
  sshl s20, s20, 16 ; sshl s21, s21, 16
  sor s20, s20, 2 ; sor s21, s21, 3
  sst [{PASS+4}], s20 ; sst [{PASS+Y+4}], s21
  scmp.lt p4, s1, 5
pass:
  rows s5, s6, s1, s2
  sadd s5, s5, {SUM} ; sadd s6, s6, {SUM}
  sst [{PASS+12}], s5 ; sst [{PASS+20}], s5
  sst [{PASS+Y+12}], s6 ; sst [{PASS+Y+20}], s6
  sem.wait s18, {BLOCK}
  @p4 dma.start {PASS}
  sem.wait s19, {BLOCK} ; sadd s2, s2, 1
  @p4 dma.start {PASS+Y} ; scmp.lt p0, s2, {BLOCKS}
  @p0 br pass
  nop 4
  sadd s1, s1, 1 ; smov s2, 0
  scmp.lt p0, s1, 6
  @p0 br gather
  nop 4

  # Everything sent and stored.
  sem.wait 2, {6*BLOCKS*BLOCK}
  sem.wait 3, {6*BLOCKS*BLOCK}
  sem.wait 4, {BLOCKS*BLOCK}
  sem.wait 5, {BLOCKS*BLOCK}
  halt
.endkernel
