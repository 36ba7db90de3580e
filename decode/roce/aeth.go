package roce

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

// AETHSize is the size of the ACK extended transport header in bytes.
const AETHSize = 4

// AETH acknowledges requests, in Acknowledge and RDMA Read Response packets.
type AETH []byte

// Syndrome reports whether it is an ACK or what kind of NAK.
func (h AETH) Syndrome() Syndrome { return Syndrome(wire.Get8(h, 0)) }

// MSN is the number of requests that the responder has completed, modulo
// 2^24.
func (h AETH) MSN() uint32 { return wire.Get24(h, 1) }

// SetSyndrome sets the syndrome.
func (h AETH) SetSyndrome(v Syndrome) { wire.PutBits(h, 0, 0xff, uint8(v)) }

// SetMSN sets the message sequence number, 24 bits.
func (h AETH) SetMSN(v uint32) { wire.Put24(h, 1, v) }

// Syndrome is the first byte of an AETH: bits 6 and 5 say what it is, bits 4
// to 0 are the credit count of an ACK, the timer of an RNR NAK or the code of
// a NAK.
type Syndrome uint8

// Syndromes that are worth a name.
const (
	// ACKUnlimited is an ACK of a responder that does not limit requests.
	ACKUnlimited    Syndrome = 0x1f
	NAKPSNSequence  Syndrome = 0x60 // packets were lost; the PSN is the expected one
	NAKInvalid      Syndrome = 0x61
	NAKRemoteAccess Syndrome = 0x62
	NAKRemoteOp     Syndrome = 0x63
	NAKInvalidRD    Syndrome = 0x64
	syndromeKind             = 0x60
	syndromeValue            = 0x1f
	syndromeRNR              = 0x20
	syndromeNAK              = 0x60
)

// RNR is the syndrome of a receiver-not-ready NAK with a timer code, 0 to 31.
func RNR(timer uint8) Syndrome { return syndromeRNR | Syndrome(timer&syndromeValue) }

// IsACK reports a positive acknowledgement.
func (s Syndrome) IsACK() bool { return s&syndromeKind == 0 }

// IsRNR reports "receiver not ready".
func (s Syndrome) IsRNR() bool { return s&syndromeKind == syndromeRNR }

// IsNAK reports a negative acknowledgement other than RNR.
func (s Syndrome) IsNAK() bool { return s&syndromeKind == syndromeNAK }

// Value is the credit code, RNR timer code or NAK code.
func (s Syndrome) Value() uint8 { return uint8(s & syndromeValue) }

// rnrTimers are the waits that the timer codes stand for, in units of 10 µs.
var rnrTimers = [32]uint32{
	65536,
	1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRTimer is how long the requester is asked to wait before it tries again;
// 0 unless s is an RNR NAK.
func (s Syndrome) RNRTimer() time.Duration {
	if !s.IsRNR() {
		return 0
	}
	return time.Duration(rnrTimers[s.Value()]) * 10 * time.Microsecond
}

// credits are the counts that the credit codes stand for.
var credits = [31]uint32{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// Credits is how many more Receives the responder has, beyond the messages that it has completed. limited is
// false if it does not say, or if s is no ACK (IBTA volume 1, section 9.7.7.2).
func (s Syndrome) Credits() (n uint32, limited bool) {
	if !s.IsACK() || s.Value() >= uint8(len(credits)) {
		return 0, false
	}
	return credits[s.Value()], true
}

// String is "ACK", "RNR NAK", "NAK PSN sequence error" and the like.
func (s Syndrome) String() string {
	switch s & syndromeKind {
	case 0:
		return "ACK"
	case syndromeRNR:
		return "RNR NAK"
	case syndromeNAK:
		switch s & (syndromeKind | syndromeValue) {
		case NAKPSNSequence:
			return "NAK PSN sequence error"
		case NAKInvalid:
			return "NAK invalid request"
		case NAKRemoteAccess:
			return "NAK remote access error"
		case NAKRemoteOp:
			return "NAK remote operational error"
		case NAKInvalidRD:
			return "NAK invalid RD request"
		}
		return "NAK reserved code"
	}
	return "reserved syndrome"
}
