package judge

import "time"

// Level says how much of a reply is compared.
type Level uint8

// Levels.
const (
	All    Level = iota // status, fields, data
	Status              // status alone
	Nothing
)

// Options of a Judge.
type Options struct {
	Level Level
	// Follow keeps a Ledger of what the server must hold also if not all of a reply is
	// compared.
	Follow bool
	// Tick is for how long the server's clock may show the same time, so that two changes
	// cannot be told apart by it.
	Tick   time.Duration
	Ignore []string // fields that are not compared: "mode", "nlink"
	// Relaxed says that calls are sent in another order than captured, where only
	// their time connects them.
	Relaxed bool
}
