// Package roce decodes the InfiniBand transport: RoCEv2 (UDP port 4791), RoCEv1 and native InfiniBand share
// its headers and its checksum.
//
// A header is a defined byte slice with getters and setters (BTH, RETH, …). Decode reads all headers of a
// packet into one Packet. Checker verifies and computes the invariant CRC. Splitter does both for a captured
// frame, and splits datagrams that segmentation offload has merged.
package roce
