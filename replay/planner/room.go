package planner

// room is the memory for what a Builder remembers until the plan is written:
// objects, names, states and those who hold them. An object is forgotten only with the Builder,
// so its memory is never given back.
//
// Code that adds something first calls full and then take. A capture may thus exceed the limit by
// one message.
type room struct{ left int }

// DefaultMemory leaves a program that builds a plan below 256 MiB: the decoder
// holds up to 24 MiB of messages, uses of objects and cookies take 30 MiB.
const DefaultMemory = 80 << 20

func (r *room) take(n int) { r.left -= n }
func (r *room) full() bool { return r.left <= 0 }

// Sizes in bytes, including entries in maps and lists, but without names.
const (
	objectSize     = 360
	detailsSize    = 420
	nameSize       = 130
	entrySize      = 80 // of a file handle
	linkSize       = 32
	extentSize     = 90
	spanSize       = 32
	stateSize      = 480
	ownerSize      = 260
	clientSize     = 700
	sessionSize    = 450
	slotSize       = 64
	credentialSize = 350
	connectionSize = 600
	serverSize     = 200
)

// maxWhat is how much of a text for readers a plan has, in bytes.
const maxWhat = 1024
