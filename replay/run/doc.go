// Package run executes plans: it prepares the files that a captured workload needs,
// sends the captured calls to a live server with the handles, state ids, sessions and
// sequence numbers of that server, has each reply compared with the captured one, and
// reports what it found.
//
// It joins what other packages know:
//
//	workload    the plan, in memory
//	schedule    which call may go when
//	world       what the plan's symbols stand for on this server
//	guard       which calls may be sent
//	judge       how a reply compares with the captured one
//	report      what is told in the end
//
// One goroutine, the engine, decides what is sent and takes in what came back; the
// transports have their own. A call passes it like this:
//
//	schedule ─► admit ──► issue ─► build ─► transport            send.go
//	              │         │                  │  done           call.go
//	              │         │                  ▼
//	           not sent  not sent   receive ─► judge ─► settle ─► end
//	                                                             receive.go
package run
