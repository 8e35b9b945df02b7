// Ops that few programs use, each against values worked out by hand.
func.func @einsum() {
  %a = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
  %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,jk->ki"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %0, dense<[[19.0, 43.0], [22.0, 50.0]]> : tensor<2x2xf32>
  %1 = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,kl->il"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %1, dense<[[36.0, 42.0], [84.0, 98.0]]> : tensor<2x2xf32>
  %2 = "stablehlo.unary_einsum"(%a) {einsum_config = "ij->j"} : (tensor<2x2xf32>) -> tensor<2xf32>
  check.expect_eq_const %2, dense<[4.0, 6.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @torch_index_select() {
  %a = stablehlo.constant dense<[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]> : tensor<3x2x2xi32>
  %i = stablehlo.constant dense<[2, 0]> : tensor<2xi32>
  %0 = "stablehlo.torch_index_select"(%a, %i) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<3x2x2xi32>, tensor<2xi32>) -> tensor<2x2x2xi32>
  check.expect_eq_const %0, dense<[[[9, 10], [11, 12]], [[1, 2], [3, 4]]]> : tensor<2x2x2xi32>
  %j = stablehlo.constant dense<[[1], [0], [1]]> : tensor<3x1xi32>
  %1 = "stablehlo.torch_index_select"(%a, %j) {dim = 1 : i64, batch_dims = 1 : i64} : (tensor<3x2x2xi32>, tensor<3x1xi32>) -> tensor<3x1x2xi32>
  check.expect_eq_const %1, dense<[[[3, 4]], [[5, 6]], [[11, 12]]]> : tensor<3x1x2xi32>
  func.return
}

// -----

func.func @broadcasting() {
  %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %b = stablehlo.constant dense<[[10], [20]]> : tensor<2x1xi32>
  %0 = chlo.broadcast_add %a, %b : (tensor<3xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[11, 12, 13], [21, 22, 23]]> : tensor<2x3xi32>
  %1 = chlo.broadcast_and %a, %b : (tensor<3xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %1, dense<[[0, 2, 2], [0, 0, 0]]> : tensor<2x3xi32>
  %2 = chlo.broadcast_compare %a, %a {comparison_direction = #chlo<comparison_direction LE>} : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
  check.expect_eq_const %2, dense<true> : tensor<3xi1>
  %3 = "chlo.constant_like"(%b) {value = 7 : i32} : (tensor<2x1xi32>) -> tensor<2x1xi32>
  check.expect_eq_const %3, dense<7> : tensor<2x1xi32>
  func.return
}

// -----

func.func @mulhi() {
  %a = stablehlo.constant dense<[-128, 127, -1]> : tensor<3xi8>
  %0 = "chlo.mulhi"(%a, %a) : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  check.expect_eq_const %0, dense<[64, 63, 0]> : tensor<3xi8>
  func.return
}

// -----

func.func @scan_backwards() {
  %a = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %b = stablehlo.constant dense<0> : tensor<2xi32>
  %0:2 = chlo.scan(%a) inits(%b) dimension=0 is_reverse=true {
  ^bb0(%x: tensor<2xi32>, %s: tensor<2xi32>):
    %1 = stablehlo.add %x, %s : tensor<2xi32>
    stablehlo.return %1, %1 : tensor<2xi32>, tensor<2xi32>
  } : (tensor<3x2xi32>, tensor<2xi32>) -> (tensor<3x2xi32>, tensor<2xi32>)
  check.expect_eq_const %0#0, dense<[[9, 12], [8, 10], [5, 6]]> : tensor<3x2xi32>
  check.expect_eq_const %0#1, dense<[9, 12]> : tensor<2xi32>
  func.return
}

// -----

func.func @ragged() {
  %a = stablehlo.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %b = stablehlo.constant dense<[[[10.0]], [[100.0]]]> : tensor<2x1x1xf32>
  %n = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %0 = "chlo.ragged_dot"(%a, %b, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<4x1xf32>, tensor<2x1x1xf32>, tensor<2xi32>) -> tensor<4x1xf32>
  check.expect_eq_const %0, dense<[[10.0], [200.0], [300.0], [0.0]]> : tensor<4x1xf32>
  func.return
}
