// Package truth compares decoded transactions with what the Linux kernel itself recorded about the same run.
//
// The kernel's side ("the truth") comes from a directory NAME.truth next to a capture: ftrace text of the NFS
// client and of the NFS server, /proc/self/mountstats, /proc/net/rpc/nfsd before and after, the log of the
// workload and the MD5 sums of the exported files at the end. [LoadDir] reads such a directory and
// [Truth.WriteTo] writes the compact JSON form that can lie beside a sample; [Load] reads both.
//
// The decoder's side is the ndjson of `rpcrdma-dump -T ndjson` (schema rpcrdma.transaction/1), read by
// [ReadTransactions]. This package knows nothing else about the decoder, so that neither can hide a mistake
// of the other.
//
// # What the kernel's numbers mean
//
// XIDs are printed as the value of the big-endian word on the wire, so they equal the ndjson key "xid" as
// they stand.
//
// xprtrdma_marshal prints xdr=head/pages/tail, the three parts of the call's xdr_buf. Their sum is the whole
// RPC call with its XDR pads, wherever the parts travel: the pad after a Read chunk is in the sum although it
// is not sent. This is what "call_bytes" must be. hdr= is the size of the RPC-over-RDMA header: 28 bytes for
// three empty lists, 24 more for each read segment, 8 for each Write chunk, 4 for a Reply chunk and 16 for
// each of their segments.
//
// mountstats, per operation: "bytes sent" adds up the same sum (rq_snd_buf.len for each transmission). "bytes
// received" adds up, for each reply, the inline RPC message plus the length of the Write chunk as returned,
// rounded up to 4 (the pad is counted although it is not written); for a reply that came in the Reply chunk,
// the length that was returned, as it is. This is what "reply_bytes" must be. (xprtrdma's frwr/inline
// accounting: rpcrdma_decode_msg and rpcrdma_decode_nomsg.)
//
// mountstats, xprt line: the counts of read, write and reply "chunks" are counts of segments. "RDMA request"
// is the sum of the lengths of all Write and Reply segments offered, "RDMA reply" the sum of the lengths
// returned. "nomsg" counts calls marshalled as RDMA_NOMSG. A call that was marshalled but never sent, since
// the connection broke first, is in these counts. "sends" counts calls and replies to backchannel calls.
//
// The per-operation counts belong to one mount: they cover the mount's rpc_clnt and the clients it
// was cloned from. The trace names clients by number (task:…@CLIENT); which of them make up the mount is
// found by trying, see [Mount].
//
// /proc/net/rpc/nfsd counts each NFSv4 operation that the server began to evaluate, so up to and including
// the one that failed.
package truth
