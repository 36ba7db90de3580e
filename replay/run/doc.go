// Package run executes plans: it prepares the files that a captured workload needs,
// sends the captured calls to a live server with the handles, state ids, sessions and
// sequence numbers of that server, has each reply compared with the captured one, and
// reports what it found.
//
// It joins what other packages know:
//
//	workload    the plan: its tables in memory, its calls in memory or in their file
//	schedule    which call may go when
//	bindings    what the plan's symbols stand for on this server
//	guard       which calls may be sent
//	judge       how a reply compares with the captured one
//	report      the result of a run
//
// One goroutine, the engine, decides what is sent and handles what comes back; the transports
// have their own goroutines. The way of a call:
//
//	feed        reads the calls ahead of the schedule             feed.go
//	 │
//	schedule ─► admit ──► issue ─► build ─► transport            admit.go
//	              │         │                  │  done           call.go
//	              │         │                  ▼
//	           not sent  not sent   receive ─► judge ─► settle ─► end
//	                                                             receive.go
//
// What a run has besides, each with its own state: locks (of NFSv3), provision (state that the plan does not create),
// recovery (after restarts of the server), corrections, delegations, slots, postponements, roots, codec.
package run
