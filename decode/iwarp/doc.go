// Package iwarp decodes and encodes iWARP: MPA framing on TCP (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP
// (RFC 5040, RFC 7306). Its Conn turns the two byte streams of a TCP connection into the operations of
// package rdma.
//
// The layers nest like this; all numbers are big-endian except for the CRC32C, which is stored little-endian:
//
//	TCP stream   | MPA Request/Reply | FPDU | FPDU | FPDU …
//	FPDU         | ULPDU length 2 | ULPDU | pad 0–3 | CRC32C 4 |
//	ULPDU        | control 2 | DDP header 12 or 16 | RDMAP payload |
//
// Where the receiver asked for it, a 4-byte marker stands at every 512th byte of the stream, counted from the
// first FPDU. A marker may split an FPDU anywhere on a 4-byte boundary.
package iwarp

import "errors"

// Errors of the decoders. They carry no position: the caller knows what it passed.
var (
	// ErrShort means that the input ends before the message does. More bytes may complete it.
	ErrShort = errors.New("iwarp: message cut short")
	// ErrMalformed means that no further bytes can make the input valid.
	ErrMalformed = errors.New("iwarp: malformed message")
)
