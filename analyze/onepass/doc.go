// Package onepass decodes the captures of a tap once for all that is made of them: the state of a report and of a
// check (see analyze/state), and rows for a file.
//
// A Pass can be interrupted where no packet is under way, and goes on in another process: see Pass.Parts. Its
// results are the same then, byte by byte.
package onepass
