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
	// Follow keeps track of what the server must hold even if replies are compared only in
	// part.
	Follow bool
	// Tick is how long the server's clock may show the same time, so that it cannot distinguish
	// two changes.
	Tick   time.Duration
	Ignore []string // fields that are not compared: "mode", "nlink"
	// Relaxed says that calls that do not depend on each other may be sent in another order than
	// captured.
	Relaxed bool
	// Shared says that other clones change the same files, so that any of them may be the cause of a difference.
	Shared bool
}
