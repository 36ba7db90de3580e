// Package client is a small NFS client on a transport.Requester: it builds calls
// with the codecs of decode/nfs, sends them, and takes replies apart. It keeps
// no cache and repeats nothing: one method is one call, so that what goes over
// the wire is what the caller asked for.
//
// V3 speaks NFSv3 with MOUNT, V4 speaks NFSv4.0, 4.1 and 4.2. Both are an FS,
// which is what prepares the files of a replay and what the benchmarks use.
package client
