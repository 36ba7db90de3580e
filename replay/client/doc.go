// Package client is a small NFS client on a transport.Requester: it builds calls
// with the codecs of decode/nfs, sends them, and decodes the replies. It has no cache: one
// method is one call, so that the wire carries what the caller asked for.
//
// V3 speaks NFSv3 with MOUNT, V4 speaks NFSv4.0, 4.1 and 4.2. Both implement FS,
// with which a replay prepares its files, and which the benchmarks use.
package client
