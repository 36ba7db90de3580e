// Package scrub compares what programs say of captures with what they say of copies without names, addresses and data, and searches the copies
// for what they must not tell. It is a lane of its own: see run.
package scrub
