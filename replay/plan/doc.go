// Package plan turns a captured NFS workload into a plan: what has to exist
// before it starts, who its clients are, and each call with the calls that it
// depends on and the reply that it had. A plan holds symbols where a capture
// holds what only the captured server could give out: file handles, state ids,
// client ids, sessions, cookies, verifiers.
//
// A Builder makes a plan of transactions; Reader and Writer know the file,
// which docs/plan.md describes. Op.AppendArgs makes the arguments of a call
// again, asking a Resolver for the value of each symbol.
package plan

// Format names the version of the file format. A reader refuses another one
// with the same name and a higher number.
const Format = "rpcrdma.plan/1"
