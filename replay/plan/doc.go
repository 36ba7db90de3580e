// Package plan is the file between a capture and its replay. It says what has to
// exist before the workload starts, who the clients are, and lists each call with
// the calls that it depends on and the reply that it had. A plan holds symbols
// where a capture holds what only the captured server could give out: file
// handles, state ids, client ids, sessions, cookies, verifiers.
//
// docs/plan.md describes the file. Reader reads it and checks its references,
// Writer writes it; replay/planner makes one of a capture. Op.AppendArgs makes the
// arguments of a call again, asking a Resolver for the value of each symbol.
package plan

// Format names the version of the file format. A Reader refuses a file with the
// same name and another number.
const Format = "rpcrdma.plan/1"
