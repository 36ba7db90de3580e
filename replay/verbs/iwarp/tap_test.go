package iwarp

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// operations lists what a decoder reports for a capture.
type operations struct {
	log    []string
	bytes  map[string]int
	events int
}

// Observer returns what a Decoder tells it.
func (o *operations) Observer() decode.Observer {
	return decode.Observer{Send: o.Send, OpStart: o.OpStart, OpData: o.OpData, Event: o.Event}
}

func (o *operations) Send(_ *rdma.Connection, s *rdma.Send) {
	o.log = append(o.log, fmt.Sprintf("send %d %d inv %v", s.From, s.Length, s.Invalidates))
}

func (o *operations) OpStart(_ *rdma.Connection, op *rdma.Op, _ rdma.Ref) {
	o.log = append(o.log, fmt.Sprintf("op %v from %d %x %x", op.Kind, op.From, op.Handle, op.Offset))
}

func (o *operations) OpData(_ *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	o.bytes[fmt.Sprintf("%v %d", op.Kind, op.From)] += int(f.Length)
}

func (o *operations) Event(_ *rdma.Connection, from rdma.Side, e rdma.Event, _ uint32, _ rdma.Ref) {
	o.events++
	o.log = append(o.log, fmt.Sprintf("event %v from %d", e, from))
}

// TestTap captures both ends' view of a connection and decodes it.
func TestTap(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, o := range []Options{{}, {CRC: CRCOn, Markers: true}, {MaxULPDU: 1400, NoPeerToPeer: true}} {
			for _, atServer := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %v %v %v", listen, o.CRC, o.MaxULPDU, atServer), func(t *testing.T) {
					testTap(t, listen, o, atServer)
				})
			}
		}
	}
}

func testTap(t *testing.T, listen string, o Options, atServer bool) {
	var file bytes.Buffer
	w := tap.NewWriter(capture.NewWriter(&file, capture.WriterOptions{Format: capture.Pcapng}))
	server, client := o, o
	if atServer {
		server.Tap = w
	} else {
		client.Tap = w
	}
	ps, pc := provider(t, server), provider(t, client)
	c, s := connect(t, ps, pc, listen, recvs(3, 100000))
	mem := make([]byte, 300000)
	r, err := s.Register(mem, verbs.RemoteRead|verbs.RemoteWrite, 0x5500000000)
	if err != nil {
		t.Fatal(err)
	}
	own, err := c.Register(make([]byte, 10), verbs.RemoteRead, verbs.OffsetAny)
	if err != nil {
		t.Fatal(err)
	}
	do(t, c, verbs.WorkRequest{Op: verbs.OpSend, Local: [][]byte{make([]byte, 200)}})
	do(t, c, verbs.WorkRequest{Op: verbs.OpWrite, Handle: r.Handle, Offset: r.Offset + 1, Local: [][]byte{make([]byte, 200001)}})
	do(t, c, verbs.WorkRequest{Op: verbs.OpRead, Handle: r.Handle, Offset: r.Offset + 2, Local: [][]byte{make([]byte, 150003)}})
	do(t, c, verbs.WorkRequest{Op: verbs.OpSend, Local: [][]byte{make([]byte, 70001)}})
	var got [4]verbs.Completion
	for n := 0; n < 2; n += s.Poll(got[:]) {
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	do(t, s, verbs.WorkRequest{Op: verbs.OpSendInvalidate, Handle: own.Handle, Local: [][]byte{make([]byte, 9)}})
	for n := 0; n < 1; n += c.Poll(got[:]) {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	pc.Close()
	ps.Close()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}

	x := &operations{bytes: make(map[string]int)}
	var conns []*rdma.Connection
	packets := 0
	d := decode.New(decode.Options{Observers: []decode.Observer{x.Observer(), {Closed: func(c *rdma.Connection) { conns = append(conns, c) }, Packet: func(v *decode.PacketView) {
		packets++
		if v.Frame.Proto != link.TCP {
			t.Errorf("packet %d is no TCP", packets)
		}
		checkSums(t, v.Packet.Data)
	}}}}, func(*transaction.Transaction) {})
	reader, err := capture.NewReader(bytes.NewReader(file.Bytes()), "self", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(reader); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"send 0 200 inv false",
		fmt.Sprintf("op %v from 0 %x %x", rdma.Write, r.Handle, r.Offset+1),
		fmt.Sprintf("op %v from 0 %x %x", rdma.Read, r.Handle, r.Offset+2),
		"send 0 70001 inv false",
		"send 1 9 inv true",
	}
	// The ready-to-receive message is a Write of nothing.
	if len(x.log) > 0 && x.log[0] == fmt.Sprintf("op %v from 0 0 0", rdma.Write) {
		x.log = x.log[1:]
	}
	if !slices.Equal(x.log, want) {
		t.Errorf("decoded %q, want %q", x.log, want)
	}
	if n := x.bytes[fmt.Sprintf("%v 0", rdma.Write)]; n != 200001 {
		t.Errorf("%d bytes written", n)
	}
	if n := x.bytes[fmt.Sprintf("%v 0", rdma.Read)]; n != 150003 {
		t.Errorf("%d bytes read", n)
	}
	if len(conns) != 1 || uint64(packets) != w.Packets() {
		t.Errorf("%d connections, %d packets of %d", len(conns), packets, w.Packets())
	}
}

// checkSums adds up a packet: a receiver gets all ones.
func checkSums(t *testing.T, ip []byte) {
	t.Helper()
	add := func(s uint32, b []byte) uint32 {
		for i, v := range b {
			if i%2 == 0 {
				s += uint32(v) << 8
			} else {
				s += uint32(v)
			}
			s = s&0xffff + s>>16
		}
		return s
	}
	header, addresses := 20, ip[12:20]
	if ip[0]>>4 == 6 {
		header, addresses = 40, ip[8:40]
	} else if add(0, ip[:20]) != 0xffff {
		t.Error("wrong IPv4 checksum")
	}
	segment := ip[header:]
	if add(add(6+uint32(len(segment))&0xffff, addresses), segment) != 0xffff {
		t.Error("wrong TCP checksum")
	}
}
