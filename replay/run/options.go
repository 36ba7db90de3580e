package run

import (
	"context"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Timing says when calls are sent.
type Timing = schedule.Timing

// Timings.
const (
	AsCaptured = schedule.AsCaptured // at the captured times, divided by Options.Speed, and never before what a call depends on
	Think      = schedule.Think      // with the captured time between a reply and the call that followed it, divided by Options.Speed
	Fast       = schedule.Fast       // as soon as dependencies allow
	FixedRate  = schedule.FixedRate  // Options.Rate calls a second, dependencies permitting
)

// Access reaches the target apart from the captured connections. The run closes it.
type Access struct {
	NFS     transport.Requester
	Mount   transport.Requester // for MOUNT, with NFSv3; nil: the one for NFS
	Version string              // of NFS: "3", "4.0" …
	Cred    oncrpc.Auth         // the user who finds the directory and makes the files
}

// Options of a Run. Zero fields take the defaults.
type Options struct {
	// Dial makes a connection of a clone, counted from 0; c is the captured connection
	// that it stands for.
	Dial func(ctx context.Context, clone int, c *plan.Connection) (transport.Requester, error)
	// Access makes the connections over which the directory is found and the files are
	// made. All connections of a run go through a guard (package guard).
	Access func(ctx context.Context) (*Access, error)
	// Access3 is Access for NFSv3, if Access is for another version and the plan has both: a server may have other handles for each.
	// Directory3 is the path that NFSv3 has of Directory, if it is another one.
	Access3    func(ctx context.Context) (*Access, error)
	Directory3 string
	// Directory is the absolute path of the directory on the target that stands for the
	// captured base. Nothing outside of it is changed.
	Directory string
	// Write allows calls that change something, and the preparation.
	Write bool
	// Reuse allows a directory that is not empty.
	Reuse bool

	Timing Timing
	Speed  float64 // 1
	Rate   float64 // calls a second, FixedRate only
	// Relaxed gives up the captured order of calls that do not depend on each other, for Fast and
	// FixedRate. The attributes that a call reads may then differ from the capture.
	Relaxed bool

	Clones int // 1
	// Shared gives all clones the files of the first. If they change them, the judge blames the server for nothing, and nothing is read back.
	Shared bool
	// Stagger is how much later each clone begins than the one before.
	Stagger time.Duration
	// Rounds is how many times the plan is repeated, LoopFor how long. Each round has its own clients and directories; one report covers all.
	Rounds  int
	LoopFor time.Duration
	// MaxP99 finds the highest rate with this latency at most, FixedRate only. It begins with Rate.
	MaxP99 time.Duration
	// WarmUp is how long calls do not count in latencies and throughput.
	WarmUp      time.Duration
	Connections int // per clone; 0: as many as captured
	// Slots is how many calls of a connection may be under way; 0: as captured
	// with Fast and FixedRate, unlimited otherwise.
	Slots int
	// Layout keeps the captured chunk layout of each call.
	Layout bool

	Verify judge.Level
	// Tick is how long the server's clock may show the same time (20 ms, two ticks of a slow
	// kernel); negative: not at all.
	Tick   time.Duration
	Ignore []string // fields that are not compared

	Prepare     bool // make the files before the replay
	PrepareOnly bool
	Incomplete  bool // go on if more than half of the files could not be made

	MaxRate     float64       // calls a second
	MaxBytes    uint64        // data read and written
	MaxDuration time.Duration // of the replay
	MaxOps      int
	Timeout     time.Duration // of one call; 60 s
	// Retries is how often a call is sent again if the server asks for it and the captured one
	// did not (120: longer than a grace period).
	Retries int
	// Patience is how long the server may put off one call (2 minutes). The run ends when maxPutOff calls exceed it.
	Patience time.Duration

	// CallbackWait is how long calls that wait for a SETCLIENTID_CONFIRM also wait for
	// the server's CB_NULL, if the captured server gave delegations of NFSv4.0 (2 s).
	CallbackWait time.Duration

	// VerifyFiles reads back at the end what the run has written and removed. It only reads.
	VerifyFiles bool

	// Window is how many calls may be between the first that is not over and the last that is sent
	// (DefaultWindow); clones share it. WindowText is how many bytes of the plan they may have
	// (DefaultWindowText). No more of a plan in a file is in memory, except for what is read ahead.
	Window, WindowText int

	// Resume goes on where another run has ended. Keep is called with what another run needs for
	// that, if this one ends early: its clients then keep their state on the server, and nothing is read
	// back.
	Resume *Snapshot
	Keep   func(*Snapshot) error

	// Observe, if set, is called with the outcome of each call, on the engine's
	// goroutine.
	Observe func(*report.Outcome)
	// Mismatches is how many of the calls that are neither same nor equivalent the report lists
	// (100).
	Mismatches int
	// Progress, if set, is called about once a second.
	Progress func(Progress)
	// Tag distinguishes the NFSv4 clients of this run from those of other runs.
	Tag string
}

// Progress is how far a run has come.
type Progress struct {
	Elapsed       time.Duration
	Done, Total   int
	InFlight      int
	Verdicts      [verdict.Count]int
	PreparedFiles int
	PrepareTotal  int
	LateBy        time.Duration // how far behind the schedule
	PutOff        int           // calls that wait because the server put them off
	PutOffWhy     string        // the latest status with which it did so
}

// DefaultTick is the default of Options.Tick.
const DefaultTick = 20 * time.Millisecond

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
	if o.Patience <= 0 {
		o.Patience = 2 * time.Minute
	}
	if o.Retries == 0 {
		o.Retries = max(120, int(2*o.Patience/time.Second))
	}
	if o.Tick == 0 {
		o.Tick = DefaultTick
	}
	if o.CallbackWait <= 0 {
		o.CallbackWait = 2 * time.Second
	}
	if o.Mismatches == 0 {
		o.Mismatches = 100
	}
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if o.WindowText <= 0 {
		o.WindowText = DefaultWindowText
	}
	if o.Resume != nil {
		o.Tag = o.Resume.Tag // it distinguishes the clients, which are the same
	}
	if o.Tag == "" {
		o.Tag = time.Now().UTC().Format("20060102T150405.000000000")
	}
	return o
}
