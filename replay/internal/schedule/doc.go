// Package schedule decides which call of a plan may go when: which replies it waits
// for (edges.go, order.go), at what time it is due (timing.go), and what is due next (agenda.go).
// It has a window of the plan: the calls from the first that is not over to the last that was
// added. It also holds the states that a call passes through (state.go, entry.go). It does no
// I/O and reads no clock.
package schedule
