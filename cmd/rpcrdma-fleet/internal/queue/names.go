package queue

import (
	"fmt"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// Names in NATS. docs/fleet.md lists which of them a submitter, a worker, a reader and an agent need.
const (
	Stream       = "RPCRDMA_UNITS"
	Consumer     = "workers"
	UnitBucket   = "rpcrdma_units"
	WorkerBucket = "rpcrdma_workers"

	subjectPrefix = "rpcrdma.unit."
	// InboxPrefix, with a role, is where replies of the server go to.
	InboxPrefix = "_INBOX_rpcrdma_"

	// Roles.
	Submitter  = "submitter"
	RoleWorker = "worker"
	Reader     = "reader"
	Agent      = "agent"
)

// Limits of what is in NATS. A peer that exceeds them is refused by the server or, where it is somebody else's
// server, by the reader.
const (
	maxMessage = 4 << 10
	maxRecord  = 16 << 10
	// maxDeliver ends what would otherwise crash every worker forever: a message at which a worker dies before it
	// can write down that it has it.
	maxDeliver = 1000
	// lastDeliver is when a worker gives a unit up that was returned again and again.
	lastDeliver = maxDeliver / 2
	// maxCrashes is how many workers may crash in a unit before it is set aside.
	maxCrashes = 3
	// maxFailures is how many attempts in a row may end in an error before the unit has failed.
	maxFailures = 3
)

// DefaultAckWait is how long after its last sign of life a worker counts as crashed.
const DefaultAckWait = 30 * time.Second

// unitTTL is how long it is remembered who decoded a unit.
const unitTTL = 30 * 24 * time.Hour

// beats is how many signs of life fit into the time after which a worker counts as crashed.
const beats = 6

func subject(t Task) string { return subjectPrefix + t.Key() }

// isKey reports whether s can be the Key of a Task.
func isKey(s string) bool {
	store, unit, ok := strings.Cut(s, "-")
	return ok && len(store) == 16 && layout.IsID(store+store) && layout.IsID(unit)
}

// validWorker reports whether s can be the name of a worker, which is a key of a bucket.
func validWorker(s string) bool {
	if s == "" || len(s) > 120 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// State is how far a unit has come.
type State string

// States of a Record.
const (
	Running  State = "running"  // a worker has it
	Returned State = "returned" // a worker gave it back: it was stopped, or the store was away
	Finished State = "done"
	Failed   State = "failed" // attempts ended in errors; it is not queued any more
	Aside    State = "aside"  // its workers crashed; it is not queued any more
)

func (s State) valid() bool {
	switch s {
	case Running, Returned, Finished, Failed, Aside:
		return true
	}
	return false
}

// Final reports whether the queue has nothing more to do with the unit.
func (s State) Final() bool { return s == Finished || s == Failed || s == Aside }

func tooLong(what string, n, limit int) error {
	return fmt.Errorf("%s has %d bytes, at most %d are accepted", what, n, limit)
}
