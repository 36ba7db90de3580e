package run

import (
	"context"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Timing says when calls are sent.
type Timing uint8

// Timings.
const (
	// AsCaptured sends at the captured times, divided by Options.Speed, and
	// never before what a call depends on.
	AsCaptured Timing = iota
	// Think keeps the time between a reply and the call that followed it on
	// the same connection, divided by Options.Speed.
	Think
	// Fast sends as soon as dependencies allow.
	Fast
	// FixedRate sends Options.Rate calls a second, dependencies permitting.
	FixedRate
)

// Verify says how much of a reply is compared.
type Verify uint8

// Levels of verification.
const (
	VerifyAll Verify = iota
	VerifyStatus
	VerifyNone
)

// Access is a way to the target beside the captured connections. The run closes it.
type Access struct {
	NFS     transport.Requester
	Mount   transport.Requester // of MOUNT, for NFSv3; nil is that of NFS
	Version string              // of NFS: "3", "4.0" …
	Cred    oncrpc.Auth         // who finds the directory and makes the files
}

// Options of a Run. Zero fields take the defaults.
type Options struct {
	// Dial makes the n-th connection of a clone, from 0; c is the captured one
	// that it stands for.
	Dial func(ctx context.Context, clone int, c *plan.Connection) (transport.Requester, error)
	// Access makes the connections by which the directory is found and the files
	// are made. All connections of a run are behind a guard (package guard).
	Access func(ctx context.Context) (*Access, error)
	// Directory is the absolute path of the directory on the target that
	// stands for the captured base. Nothing outside of it is changed.
	Directory string
	// Write allows calls that change something, and the preparation.
	Write bool
	// Reuse allows a directory that is not empty.
	Reuse bool

	Timing Timing
	Speed  float64 // 1
	Rate   float64 // calls a second, FixedRate only
	// Relaxed gives up the captured order of calls that nothing but their time
	// connects, for Fast and FixedRate. What a call reads of attributes may
	// then differ from the capture.
	Relaxed bool

	Clones      int // 1
	Connections int // per clone; 0: as many as captured
	// Slots is how many calls of a connection may be under way; 0: as captured
	// with Fast and FixedRate, unlimited otherwise.
	Slots int
	// Layout keeps the captured chunk layout of each call.
	Layout bool

	Verify Verify
	Ignore []string // fields that are not compared

	Prepare     bool // make the files before the replay
	PrepareOnly bool

	MaxRate     float64       // calls a second
	MaxBytes    uint64        // data read and written
	MaxDuration time.Duration // of the replay
	MaxOps      int
	Timeout     time.Duration // of one call; 60 s
	// Retries is how often a call is sent again that the server wants to have
	// later, though the captured one did not (120: longer than a grace period).
	Retries int

	// CallbackWait is how long a SETCLIENTID_CONFIRM is not over for want of the
	// server's CB_NULL, if the captured server went on to give delegations of
	// NFSv4.0 (2 s).
	CallbackWait time.Duration

	// Observe, if set, is told of each call that is over. It is called on the
	// engine's goroutine.
	Observe func(*Outcome)
	// Mismatches is how many calls that were neither same nor equivalent the
	// report lists (100).
	Mismatches int
	// Progress, if set, is called about once a second.
	Progress func(Progress)
	// Tag is unlike that of other runs; it names the clients of NFSv4.
	Tag string
}

// Progress says how far a run has come.
type Progress struct {
	Elapsed        time.Duration
	Done, Total    int
	InFlight       int
	Bytes          uint64
	Verdicts       [verdicts]int
	Phase          string // "prepare", "replay"
	PreparedFiles  int
	PrepareTotal   int
	LateBy         time.Duration // how far behind the schedule
	Retries, Parks int
}

// Outcome is what became of one call.
type Outcome struct {
	Clone         int
	Op            *plan.Op
	XID           uint32 // live
	Verdict       Verdict
	Reasons       []string
	Status        string    // of the reply: "NFS3_OK"; empty without one
	Due           time.Time // when it should have been sent
	Queued        time.Time
	Sent, Replied time.Time
}

func (o Options) withDefaults() Options {
	if o.Speed <= 0 {
		o.Speed = 1
	}
	if o.Clones <= 0 {
		o.Clones = 1
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.Retries == 0 {
		o.Retries = 120
	}
	if o.CallbackWait <= 0 {
		o.CallbackWait = 2 * time.Second
	}
	if o.Mismatches == 0 {
		o.Mismatches = 100
	}
	if o.Tag == "" {
		o.Tag = time.Now().UTC().Format("20060102T150405.000000000")
	}
	return o
}
