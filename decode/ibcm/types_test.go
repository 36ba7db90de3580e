package ibcm

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
)

// types is every kind of message with setters, and their getters. set takes
// the values of the fields from next, which cuts them to a width in bits.
var types = []struct {
	name string
	size int
	set  func(b []byte, next func(width int) uint64)
	get  func(b []byte) []any
}{
	{"MAD", MADSize, func(b []byte, next func(width int) uint64) {
		h := MAD(b)
		h.SetTransactionID(next(64))
		h.SetAttribute(Attribute(next(16)))
		h.SetStatus(uint16(next(16)))
		h.SetModifier(uint32(next(32)))
	}, func(b []byte) []any {
		h := MAD(b)
		return []any{
			h.BaseVersion(), h.Class(), h.ClassVersion(), h.Method(), h.Status(), h.TransactionID(), h.Attribute(), h.Modifier(), h.Data(),
		}
	}},
	{"REQ", DataSize, func(b []byte, next func(width int) uint64) {
		h := REQ(b)
		h.SetLocalID(uint32(next(32)))
		h.SetServiceID(ServiceID(next(64)))
		h.SetLocalCAGUID(next(64))
		h.SetLocalQPN(uint32(next(24)))
		h.SetResponderResources(uint8(next(8)))
		h.SetInitiatorDepth(uint8(next(8)))
		h.SetRemoteResponseTimeout(uint8(next(5)))
		h.SetTransport(Transport(next(2)))
		h.SetStartingPSN(uint32(next(24)))
		h.SetLocalResponseTimeout(uint8(next(5)))
		h.SetRetryCount(uint8(next(3)))
		h.SetPKey(uint16(next(16)))
		h.SetPathMTU(uint8(next(4)))
		h.SetRNRRetryCount(uint8(next(3)))
		h.SetMaxCMRetries(uint8(next(4)))
	}, func(b []byte) []any {
		h := REQ(b)
		return []any{
			h.ServiceID(), h.LocalCAGUID(), h.LocalQPN(), h.ResponderResources(), h.InitiatorDepth(), h.Transport(), h.StartingPSN(), h.RetryCount(), h.PKey(), h.PathMTU(), h.RNRRetryCount(), h.Primary(),
		}
	}},
	{"Path", PathSize, func(b []byte, next func(width int) uint64) {
		h := Path(b)
		h.SetLIDs(uint16(next(16)), uint16(next(16)))
		h.SetGIDs(netip.AddrFrom4([4]byte{byte(next(8))}), netip.AddrFrom16([16]byte{0xfd, 15: byte(next(8))}))
		h.SetHopLimit(uint8(next(8)))
		h.SetAckTimeout(uint8(next(5)))
	}, func(b []byte) []any {
		h := Path(b)
		return []any{
			h.LocalGID(), h.RemoteGID(), h.AckTimeout(),
		}
	}},
	{"REP", DataSize, func(b []byte, next func(width int) uint64) {
		h := REP(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetLocalQPN(uint32(next(24)))
		h.SetStartingPSN(uint32(next(24)))
		h.SetResponderResources(uint8(next(8)))
		h.SetInitiatorDepth(uint8(next(8)))
		h.SetTargetAckDelay(uint8(next(5)))
		h.SetRNRRetryCount(uint8(next(3)))
		h.SetLocalCAGUID(next(64))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := REP(b)
		return []any{
			h.LocalQPN(), h.StartingPSN(), h.ResponderResources(), h.InitiatorDepth(), h.RNRRetryCount(), h.LocalCAGUID(), h.Private(),
		}
	}},
	{"REJ", DataSize, func(b []byte, next func(width int) uint64) {
		h := REJ(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetRejected(Rejected(next(2)))
		h.SetReason(Reason(next(16)))
		h.SetInfo(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := REJ(b)
		return []any{
			h.Rejected(), h.Reason(), h.Info(), h.Private(),
		}
	}},
	{"MRA", DataSize, func(b []byte, next func(width int) uint64) {
		h := MRA(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetReceived(Rejected(next(2)))
		h.SetServiceTimeout(uint8(next(5)))
	}, func(b []byte) []any {
		h := MRA(b)
		return []any{
			h.Received(), h.ServiceTimeout(),
		}
	}},
	{"DREQ", DataSize, func(b []byte, next func(width int) uint64) {
		h := DREQ(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetRemoteQPN(uint32(next(24)))
	}, func(b []byte) []any {
		h := DREQ(b)
		return []any{
			h.RemoteQPN(),
		}
	}},
}

// values makes a function next from a seed.
func values(seed uint64) func(width int) uint64 {
	return func(width int) uint64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return seed >> (64 - width)
	}
}

// TestSetters checks that setters do not disturb each other: whatever the
// memory held before, the same values come back.
func TestSetters(t *testing.T) {
	for _, c := range types {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(200) {
				zeros, ones := make([]byte, c.size), bytes.Repeat([]byte{0xff}, c.size)
				if c.name == "MAD" {
					copy(ones, zeros[:4]) // versions, class and method have no setter
					clear(ones[6:8])
					clear(ones[HeaderSize:])
				}
				if c.name == "REQ" {
					// Paths have setters of their own.
					clear(ones[reqPrimaryPath:reqPrivate])
				}
				c.set(zeros, values(seed))
				c.set(ones, values(seed))
				if a, b := c.get(zeros), c.get(ones); !reflect.DeepEqual(a, b) {
					t.Fatalf("seed %d:\n%v in zeros\n%v in ones", seed, a, b)
				}
			}
		})
	}
}

// TestShort checks that messages cut anywhere are safe.
func TestShort(t *testing.T) {
	for _, c := range types {
		for n := range c.size {
			b := bytes.Repeat([]byte{0xa5}, n)
			c.get(b)
			c.set(b, values(1))
			c.get(b)
		}
		c.get(nil)
		c.set(nil, values(1))
	}
}
