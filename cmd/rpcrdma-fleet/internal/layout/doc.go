// Package layout says which objects a fleet keeps in its store, and what is in them. It does no I/O.
//
//	jobs/<job>/job.json             Job: what was submitted
//	units/<unit>/unit.json          Unit: one tap, its files in order
//	units/<unit>/progress           what a worker needs to go on after a crash; only while the unit is decoded
//	units/<unit>/state              a file of analyze/state: what reports are made from
//	units/<unit>/done.json          Done: written last; with it, and only with it, the unit is done
//	units/<unit>/failed/<n>.json    Failure
//	units/<unit>/aside.json         Aside: the unit is not tried any more
//	transactions/day=YYYY-MM-DD/tap=<tap>/<unit>-<part>.parquet
//
// Jobs and units are identified by a hash of their contents, so the same input is the same work however often
// it is submitted or delivered. Objects may have been written by anybody: each Parse function checks all that the
// fleet relies on.
package layout
