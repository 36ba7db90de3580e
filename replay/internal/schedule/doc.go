// Package schedule decides which call of a plan may go when: which replies it waits
// for (edges.go), at what time it is due (timing.go), and what is due next (agenda.go).
// It also holds the states that a call passes through (state.go, entry.go). It does no
// I/O and reads no clock.
package schedule
