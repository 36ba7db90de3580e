package fabric_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

func TestNameService(t *testing.T) {
	given := map[uint64]string{4500: "NVMe-oF", 0xabcd: "MPI"}
	login := func(s *rdma.Setup) {
		binary.BigEndian.PutUint32(s.PrivateBytes[16:], 8260)
		binary.BigEndian.PutUint16(s.PrivateBytes[24:], 6)
		s.PrivateBytesLen = 64
	}
	for _, c := range []struct {
		fabric rdma.Fabric
		id     uint64
		ports  [2]uint16
		set    func(*rdma.Setup)
		want   string
		source fabric.Source
	}{
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 20049)), [2]uint16{}, nil, "NFS/RDMA", fabric.SourceSetup},
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 4420)), [2]uint16{}, nil, "NVMe-oF", fabric.SourceSetup},
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 5445)), [2]uint16{}, nil, "SMB Direct", fabric.SourceSetup},
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 987)), [2]uint16{}, nil, "Lustre", fabric.SourceSetup},
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 988)), [2]uint16{}, nil, "Lustre", fabric.SourceSetup},
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 8009)), [2]uint16{}, nil, "NVMe-oF discovery", fabric.SourceSetup},
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 24008)), [2]uint16{}, nil, "GlusterFS", fabric.SourceSetup},
		{rdma.InfiniBand, uint64(ibcm.IPServiceID(6, 3260)), [2]uint16{}, nil, "iSER", fabric.SourceSetup},
		{rdma.InfiniBand, uint64(ibcm.IPServiceID(6, 445)), [2]uint16{}, nil, "SMB Direct", fabric.SourceSetup},
		{rdma.IWARP, 0, [2]uint16{50000, 3260}, nil, "iSER", fabric.SourcePort},
		{rdma.IWARP, 0, [2]uint16{50000, 5445}, nil, "SMB Direct", fabric.SourcePort},
		{rdma.IWARP, 0, [2]uint16{50000, 4420}, nil, "NVMe-oF", fabric.SourcePort},
		{rdma.IWARP, 0, [2]uint16{50000, 24008}, nil, "GlusterFS", fabric.SourcePort},
		{rdma.TCP, 0, [2]uint16{50000, 3260}, nil, "iSER or iSCSI", fabric.SourcePort},
		{rdma.TCP, 0, [2]uint16{50000, 445}, nil, "SMB", fabric.SourcePort},
		{rdma.RoCEv2, uint64(ibcm.IPServiceID(6, 4500)), [2]uint16{}, nil, "NVMe-oF", fabric.SourceUser},
		{rdma.InfiniBand, 0xabcd, [2]uint16{}, nil, "MPI", fabric.SourceUser},
		{rdma.InfiniBand, 0x0002c90300000001, [2]uint16{}, login, "SRP", fabric.SourceGuess},
		{rdma.InfiniBand, 0x0002c90300000001, [2]uint16{}, nil, "unknown", fabric.SourceNone},
		{rdma.RoCEv2, 0, [2]uint16{987, 20049}, nil, "unknown", fabric.SourceNone}, // no ports of TCP
		{rdma.IWARP, 0, [2]uint16{50000, 20049}, nil, "NFS/RDMA", fabric.SourcePort},
		{rdma.IWARP, 0, [2]uint16{20049, 50000}, nil, "NFS/RDMA", fabric.SourcePort},
		{rdma.TCP, 0, [2]uint16{987, 50000}, nil, "unknown", fabric.SourceNone}, // a privileged client
		{rdma.IWARP, 0, [2]uint16{50000, 4500}, nil, "NVMe-oF", fabric.SourceUser},
	} {
		x := &rdma.Connection{Fabric: c.fabric}
		x.Ends[0].Port, x.Ends[1].Port = c.ports[0], c.ports[1]
		if c.id != 0 {
			x.Setup[0] = rdma.Setup{Message: rdma.SetupREQ, ServiceID: c.id}
		}
		if c.set != nil {
			c.set(&x.Setup[0])
		}
		if s := fabric.NameService(x, 1, given); s.Name != c.want || s.Source != c.source {
			t.Errorf("%+v: %v by %v", c, s, s.Source)
		}
	}
}

// TestGuess begins in the middle of connections: the first messages identify the service.
func TestGuess(t *testing.T) {
	call := func(program string) string {
		return "abcd\x00\x00\x00\x01\x00\x00\x00\x20" + strings.Repeat("\x00", 16) + "abcd\x00\x00\x00\x00\x00\x00\x00\x02" + program + strings.Repeat("\x00", 40)
	}
	for _, x := range [...]struct{ want, data string }{
		{"NFS/RDMA?", call("\x00\x01\x86\xa3")},
		{"GlusterFS?", call("\x00\x13\xd0\x05")},
		{"RPC-over-RDMA?", call("\x12\x34\x56\x78")},
		{"SMB Direct?", "\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x18\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\xfeSMB" + strings.Repeat("\x00", 60)},
		{"iSER?", "\x18" + strings.Repeat("\x00", 27) + "\x01" + strings.Repeat("\x00", 47)},
		{"NVMe-oF?", "\x7f\x40\x00\x00\x01" + strings.Repeat("\x00", 59+1024)},
		{"NVMe-oF?", "\x02\x40\x07\x00\x01\x00\x00\x00" + strings.Repeat("\x00", 31) + "\x4f" + strings.Repeat("\x00", 24)},
		{"unknown", strings.Repeat("\x00", 64)},
		{"unknown", "\x02\x40\x07\x00\x01\x00\x00\x00" + strings.Repeat("\x00", 56)},
		{"SMB Direct?", "\x00\x01\x00\x01\x00\x00\x0a\x00" + strings.Repeat("\x00", 12)},
		{"Lustre?", "\x91\x1b\xe9\x0b" + strings.Repeat("\x00", 60)},
		{"iSER?", "\x10" + strings.Repeat("\x00", 27) + "\x43" + strings.Repeat("\x00", 47)},
		{"NVMe-oF?", "\x7f\x40\x00\x00\x01" + strings.Repeat("\x00", 59)},
		{"RPC-over-RDMA?", "abcd\x00\x00\x00\x01\x00\x00\x00\x20\x00\x00\x00\x00" + strings.Repeat("\x00", 40)},
		{"unknown", strings.Repeat("\x55", 100)},
	} {
		s := newScene(fabric.Options{})
		s.c.Setup[0].ServiceID = 0
		s.at(0, 0, roce.RCSendOnly, 0, len(x.data), func(_ *link.Frame, p *roce.Packet) { p.Payload = []byte(x.data) })
		s.at(5, 1, roce.RCAcknowledge, 0, 0, ack)
		s.done()
		if len(s.ops) != 1 || s.ops[0].Service.String() != x.want {
			t.Errorf("%s: %+v", x.want, s.ops)
		}
	}
}

func TestDecodeAs(t *testing.T) {
	m := make(map[uint64]string)
	for _, good := range []string{"4500=nvme", " 0x1062710 = NFS", "18515=perftest"} {
		if err := fabric.ParseDecodeAs(m, good); err != nil {
			t.Error(err)
		}
	}
	if m[4500] != "NVMe-oF" || m[0x1062710] != "NFS/RDMA" || len(m) != 3 {
		t.Error(m)
	}
	for _, bad := range []string{"", "4500", "4500=", "=nvme", "4500=ftp", "70000=nvme", "0=nvme", "-1=nvme", "0x=nvme", "0x10000000000000000=nvme"} {
		if err := fabric.ParseDecodeAs(m, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestStream has a closed window, and a loss signalled by duplicate acknowledgements, over iWARP.
func TestStream(t *testing.T) {
	var got []fabric.Episode
	r := fabric.New(fabric.Options{Episode: func(e *fabric.Episode) {
		kept := *e
		kept.Lost = append([]fabric.Range{}, e.Lost...)
		got = append(got, kept)
	}})
	c := &rdma.Connection{ID: 1, Fabric: rdma.IWARP}
	n := uint64(0)
	see := func(us int64, from rdma.Side, start, end, acked uint64, zero bool) {
		n++
		r.Saw(c, &rdma.Sighting{
			Ref: rdma.Ref{Time: us * 1000, Number: n}, From: from, Class: rdma.ClassSegment, Bytes: uint32(end - start),
			Placed: true, HasAck: true, Start: start, End: end, Acked: acked, ZeroWindow: zero,
		})
	}
	see(0, 0, 0, 1000, 0, false)
	see(10, 0, 1000, 2000, 0, false) // lost behind the capture
	see(20, 0, 2000, 3000, 0, false)
	see(30, 1, 0, 0, 1000, false)
	see(40, 1, 0, 0, 1000, false)
	see(50, 0, 1000, 2000, 0, false)
	see(60, 1, 0, 0, 3000, false)
	see(100, 1, 0, 0, 3000, true)
	see(5100, 0, 2999, 3000, 0, false) // a probe
	see(5110, 1, 0, 0, 3000, true)
	see(9100, 1, 0, 0, 3000, false)
	see(10000, 0, 3000, 4000, 0, false)
	see(215000, 0, 3000, 4000, 0, false)
	see(215010, 1, 0, 0, 4000, false)
	see(216000, 0, 4000, 5000, 0, false)
	see(216500, 0, 4000, 5000, 0, false) // a copy: no timer is so short
	see(216600, 1, 0, 0, 5000, false)
	if n := r.Totals().Copies; n != 1 {
		t.Errorf("%d copies", n)
	}
	r.Closed(c, rdma.Ref{})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	if e := &got[0]; e.Notice != fabric.ByDupAcks || e.NAK.Number != 5 || e.First.Number != 6 || e.CaughtUp.Number != 7 || e.Resent != 1 || e.Lost[0] != (fabric.Range{Start: 1000, Count: 1000}) {
		t.Errorf("%+v", *e)
	}
	if e := &got[1]; e.Notice != fabric.ByZeroWind || e.Waited != 9000*us {
		t.Errorf("%+v", *e)
	}
	if e := &got[2]; e.Notice != fabric.ByTimer || e.Waited != 205000*us || e.Timeouts != 1 {
		t.Errorf("%+v", *e)
	}
}

// TestServerPort: a client of RPC takes a privileged port, and 860 is iSCSI's.
func TestServerPort(t *testing.T) {
	x := &rdma.Connection{Fabric: rdma.TCP}
	x.Ends[0].Port, x.Ends[1].Port = 20048, 860 // begins with a packet of the server
	if s := fabric.NameService(x, 0, nil); s.Name != "unknown" {
		t.Errorf("server first: %v", s)
	}
	if s := fabric.NameService(x, 1, nil); s.Name != "iSCSI" {
		t.Errorf("taken for the client: %v", s)
	}
}
