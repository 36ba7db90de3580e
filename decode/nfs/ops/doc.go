// Package ops tells what is known of each procedure and operation of the NFS
// family, beside its XDR: whether it changes something, which file handles and
// names decide where it acts, and what it does to the current and the saved file
// handle of a COMPOUND.
//
// There is one table, by program; an entry that is not in it does not exist, so
// whoever decides by it decides by what is allowed. A test walks every procedure
// and operation that the codecs define, and fails for one without a class.
package ops
