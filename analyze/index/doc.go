// Package index finds the transactions of an XID in a large capture without reading all of it.
//
// While the whole capture is decoded once, a Maker divides it into segments. For each it writes the state of the decoder at its
// beginning (decode.Decoder.SaveState, with what the consumer of the transactions knows), and the XIDs of the transactions that
// were emitted in it. An Index tells from that which segments have to be decoded for an XID, and decodes these: with the same
// state, from the same packets, the same transactions come out.
//
//	segments     0           1           2           3
//	             ├───────────┼───────────┼───────────┼────── …
//	state        ●           ●           ●           ●
//	transaction       ├───────────────┤                      first packet in 0, emitted in 1: decode 0 and 1
//
// An index is used only if nothing speaks against it. It is signed with a key, so that nobody else can have made or changed it. It
// names the capture: size, time of the last change, and a checksum of samples at places that only who has the key knows. What is
// decoded must agree with what was decoded when the index was made: the bytes of the segments, the counts at their ends, and how
// many transactions there are. Whatever does not is an error, and the caller reads the whole capture.
//
// The file is
//
//	magic, version
//	of each segment, in any order: state with the place in the capture, XIDs
//	directory: JSON, with the places, lengths and SHA-256 of these parts
//	length of the directory (8 bytes, big-endian), HMAC-SHA256 of it
//
// See docs/design/0078-resume-state.md.
package index
