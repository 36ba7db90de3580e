// Package nlm serves the Network Lock Manager, versions 1, 3 and 4 (X/Open XNFS; RFC 1813,
// appendix II), by which clients of NFSv3 lock files, and as much of the Network Status
// Monitor as a client needs: it says that it has restarted, and learns that the server has.
//
// The locks themselves are in package state, with those of NFSv4: each protocol sees the
// other's. Here are the hosts and their owners, the locks that wait, and the callbacks that
// tell of them.
//
// A lock belongs to a host (an address, and the name that it gives itself) and to an owner on
// it. Who calls from the address of a host can unlock what the host has locked: NLM has no
// other protection. A host keeps its locks until it gives them up, or restarts and says so
// (SM_NOTIFY): as with Linux there is no lease. A lock that would wait for its own owner is
// refused.
package nlm
