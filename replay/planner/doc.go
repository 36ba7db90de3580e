// Package planner turns a captured NFS workload into a plan (replay/plan).
//
// Build reads a capture. A Builder takes transactions one by one, in the order of
// their calls: it follows the name space and the states of the captured servers,
// replaces in each call what only those servers could have given out by symbols,
// and finds the earlier calls that each call depends on.
//
// The files follow the way of a transaction: build, builder, call; then nfs3,
// nfsacl and nfs4 for the arguments, operation by operation; below them what they
// share: space (objects and names), states (clients, sessions, state ids), history
// and deps (dependencies).
package planner
