// Package simulate makes captures whose cause of slowness is known: a simulation, in virtual time, of clients,
// a path and a server that speak NFS over RPC-over-RDMA, with three capture points. The truth about a cause is
// the run with it minus the same run without it.
//
// The package knows nothing of the decoders of transactions: it appends headers with the codecs, and what the
// hosts did it knows because it did it.
//
// The model follows the rules of the wire: requests have consecutive PSNs, responses take theirs; a lost packet
// is answered by one NAK, and all from it on is sent again; the acknowledgement timeout is the announced one; a
// requester whose peer is not ready waits the time that it is told; requests stay in order behind a Read that
// may not be sent yet.
package simulate
