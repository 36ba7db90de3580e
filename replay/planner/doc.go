// Package planner turns a captured NFS workload into a plan (replay/plan).
//
// Build reads a capture. A Builder takes transactions one by one, in the order of
// their calls: it follows the name space and the states of the captured servers,
// replaces the values that only those servers could have given out by symbols, and finds the
// earlier calls that each call depends on.
//
// The files, in the order in which a transaction passes them:
//
//	build, builder      a capture, a transaction
//	judge, resent       whether it is replayed; recovery: effects of a restart of the server
//	call, add           it becomes an op
//	nfs3, nfsacl, nfs4  its arguments, by a table of functions for each procedure and operation;
//	                    nfs4objects, -open, -state, -data, -client have those of NFSv4
//	form                arguments as fields, compared with the captured bytes
//	effects             what a call does to objects, and which order follows
//	space, bases        names and objects; object, attributes: what is known of one
//	states, stateids    clients, sessions, owners, state ids
//	content, datafile   what was read and written
//	order               dependencies: a package of its own
//	layout, credential, expect, describe, cookies
//	count, lines, room  the summary, the table of objects, the memory that all this takes
package planner
