// Package readback reads at the end of a run what the run has written and removed, and
// compares it with what the expected state says the server must hold: names (names.go), attributes
// and bytes (objects.go). It only reads. What it cannot compare it counts, with the reason.
package readback
