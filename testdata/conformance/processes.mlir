// Processes that meet, send, receive, read and print.
module @collectives {
  func.func @sum(%x: tensor<2xi32>) -> tensor<2xi32> {
    %0 = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>
    return %0 : tensor<2xi32>
  }
  func.func @main() {
    %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %b = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
    %r:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@sum], [@sum]]} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
    check.expect_eq_const %r#0, dense<[11, 22]> : tensor<2xi32>
    check.expect_eq %r#0, %r#1 : tensor<2xi32>
    func.return
  }
}

// -----

module @channel {
  func.func @to(%x: tensor<i64>, %t: !stablehlo.token) -> !stablehlo.token {
    %0 = "stablehlo.send"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>} : (tensor<i64>, !stablehlo.token) -> !stablehlo.token
    return %0 : !stablehlo.token
  }
  func.func @from(%t: !stablehlo.token) -> (tensor<i64>, !stablehlo.token) {
    %0:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>} : (!stablehlo.token) -> (tensor<i64>, !stablehlo.token)
    return %0#0, %0#1 : tensor<i64>, !stablehlo.token
  }
  func.func @main() {
    %x = stablehlo.constant dense<42> : tensor<i64>
    %t = stablehlo.after_all : !stablehlo.token
    %r:3 = "interpreter.run_parallel"(%t, %x, %t) {programs = [[@from], [@to]]} : (!stablehlo.token, tensor<i64>, !stablehlo.token) -> (tensor<i64>, !stablehlo.token, !stablehlo.token)
    check.expect_eq_const %r#0, dense<42> : tensor<i64>
    func.return
  }
}

// -----

func.func @probes() {
  %a = stablehlo.constant dense<[1.5, 2.5]> : tensor<2xf32>
  %0 = interpreter.probe %a, probe_id = "p" : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  %2 = interpreter.probe %1, probe_id = "p" : tensor<2xf32>
  check.expect_serialized_eq %a, probe_id = "p" : tensor<2xf32>
  check.expect_serialized_eq %2, probe_id = "p", iter = 1 : tensor<2xf32>
  func.return
}
