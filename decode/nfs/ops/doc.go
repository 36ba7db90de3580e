// Package ops describes each procedure and operation of the NFS family beyond its XDR:
//
//   - whether it changes something, and which file handles and names decide where
//     (Class, Act);
//   - its effect on the current and the saved file handle of a COMPOUND (Effect,
//     Walk, FileWalk);
//   - which object, name and range it is about (Act.Subject), and what it does with
//     the state id that it names (Use, Held);
//   - what its results give to later calls (Gives, Outcome), which parts of them may
//     travel in chunks, and how much room they need (Reply);
//   - what it says about the purpose of its COMPOUND (Weight, Purpose).
//
// There is one table for each program. Whatever is not in it is unknown, so that decisions
// made by it are allow-lists. A test goes through all procedures and operations that the
// codecs define, and fails for one without a class.
package ops
