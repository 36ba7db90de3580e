package ibcm

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
)

// types is every kind of message with all its setters and getters. set takes
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
		h.SetLocalQKey(uint32(next(32)))
		h.SetLocalQPN(uint32(next(24)))
		h.SetResponderResources(uint8(next(8)))
		h.SetLocalEECN(uint32(next(24)))
		h.SetInitiatorDepth(uint8(next(8)))
		h.SetRemoteEECN(uint32(next(24)))
		h.SetRemoteResponseTimeout(uint8(next(5)))
		h.SetTransport(Transport(next(2)))
		h.SetFlowControl(next(1) == 1)
		h.SetStartingPSN(uint32(next(24)))
		h.SetLocalResponseTimeout(uint8(next(5)))
		h.SetRetryCount(uint8(next(3)))
		h.SetPKey(uint16(next(16)))
		h.SetPathMTU(uint8(next(4)))
		h.SetRDCExists(next(1) == 1)
		h.SetRNRRetryCount(uint8(next(3)))
		h.SetMaxCMRetries(uint8(next(4)))
		h.SetSRQ(next(1) == 1)
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := REQ(b)
		return []any{
			h.LocalID(), h.ServiceID(), h.LocalCAGUID(), h.LocalQKey(), h.LocalQPN(), h.ResponderResources(), h.LocalEECN(), h.InitiatorDepth(), h.RemoteEECN(), h.RemoteResponseTimeout(), h.Transport(), h.FlowControl(), h.StartingPSN(), h.LocalResponseTimeout(), h.RetryCount(), h.PKey(), h.PathMTU(), h.RDCExists(), h.RNRRetryCount(), h.MaxCMRetries(), h.SRQ(), h.Primary(), h.Alternate(), h.Private(), h.IPHeader(), h.Consumer(),
		}
	}},
	{"Path", PathSize, func(b []byte, next func(width int) uint64) {
		h := Path(b)
		h.SetLIDs(uint16(next(16)), uint16(next(16)))
		h.SetGIDs(netip.AddrFrom4([4]byte{byte(next(8))}), netip.AddrFrom16([16]byte{0xfd, 15: byte(next(8))}))
		h.SetFlowLabel(uint32(next(20)))
		h.SetPacketRate(uint8(next(6)))
		h.SetTrafficClass(uint8(next(8)))
		h.SetHopLimit(uint8(next(8)))
		h.SetSL(uint8(next(4)))
		h.SetSubnetLocal(next(1) == 1)
		h.SetAckTimeout(uint8(next(5)))
	}, func(b []byte) []any {
		h := Path(b)
		return []any{
			h.LocalLID(), h.RemoteLID(), h.LocalGID(), h.RemoteGID(), h.FlowLabel(), h.PacketRate(), h.TrafficClass(), h.HopLimit(), h.SL(), h.SubnetLocal(), h.AckTimeout(),
		}
	}},
	{"REP", DataSize, func(b []byte, next func(width int) uint64) {
		h := REP(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetLocalQKey(uint32(next(32)))
		h.SetLocalQPN(uint32(next(24)))
		h.SetLocalEECN(uint32(next(24)))
		h.SetStartingPSN(uint32(next(24)))
		h.SetResponderResources(uint8(next(8)))
		h.SetInitiatorDepth(uint8(next(8)))
		h.SetTargetAckDelay(uint8(next(5)))
		h.SetFailoverAccepted(uint8(next(2)))
		h.SetFlowControl(next(1) == 1)
		h.SetRNRRetryCount(uint8(next(3)))
		h.SetSRQ(next(1) == 1)
		h.SetLocalCAGUID(next(64))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := REP(b)
		return []any{
			h.LocalID(), h.RemoteID(), h.LocalQKey(), h.LocalQPN(), h.LocalEECN(), h.StartingPSN(), h.ResponderResources(), h.InitiatorDepth(), h.TargetAckDelay(), h.FailoverAccepted(), h.FlowControl(), h.RNRRetryCount(), h.SRQ(), h.LocalCAGUID(), h.Private(),
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
			h.LocalID(), h.RemoteID(), h.Rejected(), h.Reason(), h.Info(), h.Private(),
		}
	}},
	{"MRA", DataSize, func(b []byte, next func(width int) uint64) {
		h := MRA(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetReceived(Rejected(next(2)))
		h.SetServiceTimeout(uint8(next(5)))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := MRA(b)
		return []any{
			h.LocalID(), h.RemoteID(), h.Received(), h.ServiceTimeout(), h.Private(),
		}
	}},
	{"RTU", DataSize, func(b []byte, next func(width int) uint64) {
		h := RTU(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := RTU(b)
		return []any{
			h.LocalID(), h.RemoteID(), h.Private(),
		}
	}},
	{"DREQ", DataSize, func(b []byte, next func(width int) uint64) {
		h := DREQ(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetRemoteQPN(uint32(next(24)))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := DREQ(b)
		return []any{
			h.LocalID(), h.RemoteID(), h.RemoteQPN(), h.Private(),
		}
	}},
	{"DREP", DataSize, func(b []byte, next func(width int) uint64) {
		h := DREP(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := DREP(b)
		return []any{
			h.LocalID(), h.RemoteID(), h.Private(),
		}
	}},
	{"SIDRREQ", DataSize, func(b []byte, next func(width int) uint64) {
		h := SIDRREQ(b)
		h.SetRequestID(uint32(next(32)))
		h.SetPKey(uint16(next(16)))
		h.SetServiceID(ServiceID(next(64)))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := SIDRREQ(b)
		return []any{
			h.RequestID(), h.PKey(), h.ServiceID(), h.Private(), h.IPHeader(),
		}
	}},
	{"SIDRREP", DataSize, func(b []byte, next func(width int) uint64) {
		h := SIDRREP(b)
		h.SetRequestID(uint32(next(32)))
		h.SetStatus(uint8(next(8)))
		h.SetQPN(uint32(next(24)))
		h.SetServiceID(ServiceID(next(64)))
		h.SetQKey(uint32(next(32)))
		h.SetInfo(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := SIDRREP(b)
		return []any{
			h.RequestID(), h.Status(), h.QPN(), h.ServiceID(), h.QKey(), h.Info(), h.Private(),
		}
	}},
	{"LAP", DataSize, func(b []byte, next func(width int) uint64) {
		h := LAP(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetRemoteQPN(uint32(next(24)))
		h.SetRemoteResponseTimeout(uint8(next(5)))
		h.SetLIDs(uint16(next(16)), uint16(next(16)))
		h.SetGIDs(netip.AddrFrom4([4]byte{byte(next(8))}), netip.AddrFrom16([16]byte{0xfd, 15: byte(next(8))}))
		h.SetFlowLabel(uint32(next(20)))
		h.SetTrafficClass(uint8(next(8)))
		h.SetHopLimit(uint8(next(8)))
		h.SetPacketRate(uint8(next(6)))
		h.SetSL(uint8(next(4)))
		h.SetSubnetLocal(next(1) == 1)
		h.SetAckTimeout(uint8(next(5)))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := LAP(b)
		return []any{
			h.LocalID(), h.RemoteID(), h.RemoteQPN(), h.RemoteResponseTimeout(), h.LocalLID(), h.RemoteLID(), h.LocalGID(), h.RemoteGID(), h.FlowLabel(), h.TrafficClass(), h.HopLimit(), h.PacketRate(), h.SL(), h.SubnetLocal(), h.AckTimeout(), h.Private(),
		}
	}},
	{"APR", DataSize, func(b []byte, next func(width int) uint64) {
		h := APR(b)
		h.SetIDs(uint32(next(32)), uint32(next(32)))
		h.SetStatus(uint8(next(8)))
		h.SetInfo(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
		h.SetPrivate(bytes.Repeat([]byte{byte(next(8))}, int(next(7))))
	}, func(b []byte) []any {
		h := APR(b)
		return []any{
			h.LocalID(), h.RemoteID(), h.Status(), h.Info(), h.Private(),
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

func TestIsValid(t *testing.T) {
	b := make([]byte, DataSize)
	for i, valid := range []func([]byte) bool{
		func(b []byte) bool { return REQ(b).IsValid() }, func(b []byte) bool { return REP(b).IsValid() },
		func(b []byte) bool { return REJ(b).IsValid() }, func(b []byte) bool { return MRA(b).IsValid() },
		func(b []byte) bool { return RTU(b).IsValid() }, func(b []byte) bool { return DREQ(b).IsValid() },
		func(b []byte) bool { return DREP(b).IsValid() }, func(b []byte) bool { return SIDRREQ(b).IsValid() },
		func(b []byte) bool { return SIDRREP(b).IsValid() }, func(b []byte) bool { return LAP(b).IsValid() },
		func(b []byte) bool { return APR(b).IsValid() },
	} {
		if !valid(b) || valid(b[:DataSize-1]) || valid(nil) {
			t.Errorf("number %d", i)
		}
	}
	if MAD(nil).IsValid() || IPHeader(nil).IsValid() || IPHeader(make([]byte, IPHeaderSize)).IsValid() {
		t.Error("nothing passes for valid")
	}
}
