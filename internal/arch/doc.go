// Package arch holds the test that keeps the dependencies of the module
// pointing one way:
//
//	cmd ─► analyze ─► decode ─► capture
//
// Within decode, what reads headers knows nothing of who uses them: the codec
// of RPC-over-RDMA knows no fabric, a fabric knows no RPC, the protocols in XDR
// know neither. The rules are in the table of the test; docs/architecture.md
// draws them.
package arch
