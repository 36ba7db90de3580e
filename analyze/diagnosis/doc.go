// Package diagnosis answers why a mount is slow: which side, what, how much time, how certain, on what evidence.
//
//	r := diagnosis.New(diagnosis.Options{})
//	r.Attach(&opt, memory, sessions)     // decode.Options
//	…                                    // r.Transaction for each transaction
//	report := r.Report()                 // may be called repeatedly
//
// Each cause looks at the calls of the capture for itself, in a file of its own. What it says is calibrated: a cause that is certain
// is proved by packets, one that is likely has no other explanation that the capture shows, and one that is possible is worth a
// question. A wrong culprit is worse than none.
package diagnosis
