// Package merge makes one result of the units of a job: it tells which units are done, and gives their states to
// analyzers, which go through them twice (see state.Survey).
//
// States are read one at a time, and a few ahead, so memory grows with the result and by some 100 bytes for each unit
// and connection, not with the states. A unit whose objects are damaged, hostile or of other options than those of
// most units is named and counted as failed; the others are merged.
package merge
