// Package ops tells what is known of each procedure and operation of the NFS
// family, beside its XDR:
//
//   - whether it changes something, and which file handles and names decide where
//     (Class, Act);
//   - what it does to the current and the saved file handle of a COMPOUND (Effect,
//     Walk, Trail);
//   - which object, name and range it is about (Act.Subject), and which state it
//     needs (Held);
//   - what its results hold for later calls (Gives, Outcome), which of them may
//     travel in chunks, and how much room they need (Reply);
//   - what it tells about the COMPOUND that it stands in (Weight, Purpose).
//
// There is one table, by program; an entry that is not in it does not exist, so
// whoever decides by it decides by what is allowed. A test walks every procedure
// and operation that the codecs define, and fails for one without a class.
package ops
