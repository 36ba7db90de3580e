package check

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// streamCapture is NFS over siw, without losses and without CRCs; each FPDU lies in one TCP segment.
const streamCapture = "iwarp-nfs40-basic.pcap.zst"

// placed is a whole DDP segment in a packet of a capture.
type placed struct {
	p    *capture.Packet
	host byte // last byte of the sender's address
	u    iwarp.ULPDU
}

func (x *placed) control() iwarp.Control { return x.u.Control() }

func (x *placed) set(c iwarp.Control) { iwarp.Untagged(x.u).SetControl(c) }

// segmentsOf are the DDP segments of a capture of Ethernet and IPv4, and its MPA frames.
func segmentsOf(packets []capture.Packet) (out []placed, frames [][]byte) {
	for i := range packets {
		d := packets[i].Data
		if len(d) < 54 || d[12] != 8 || d[23] != 6 {
			continue
		}
		end := 14 + int(binary.BigEndian.Uint16(d[16:]))
		b := d[34+int(d[46]>>4)*4 : end]
		if bytes.HasPrefix(b, []byte("MPA ID")) {
			frames = append(frames, b)
			continue
		}
		for {
			f, err := iwarp.ParseFPDU(b)
			if err != nil || !iwarp.ULPDU(f.ULPDU()).Valid(f.ULPDULen()) {
				break
			}
			out = append(out, placed{&packets[i], d[29], f.ULPDU()})
			b = b[len(f):]
		}
	}
	return out, frames
}

// streamChanges break a rule each by changing one thing. They return the packet that shows it.
var streamChanges = map[string]func(find func(n int, is func(*placed) bool) *placed, frames [][]byte) *placed{
	"ddp-segment-malformed": func(find func(int, func(*placed) bool) *placed, _ [][]byte) *placed {
		x := find(40, isOp(iwarp.OpSend))
		iwarp.Untagged(x.u).SetQN(1)
		return x
	},
	"ddp-msn-wrong": func(find func(int, func(*placed) bool) *placed, _ [][]byte) *placed {
		x := find(40, isOp(iwarp.OpSend))
		iwarp.Untagged(x.u).SetMSN(iwarp.Untagged(x.u).MSN() + 1)
		return x
	},
	"ddp-segment-order": func(find func(int, func(*placed) bool) *placed, _ [][]byte) *placed {
		x := find(3, func(x *placed) bool { return isOp(iwarp.OpWrite)(x) && !x.control().Last() })
		x = find(0, func(y *placed) bool {
			return isOp(iwarp.OpWrite)(y) && iwarp.Tagged(y.u).STag() == iwarp.Tagged(x.u).STag() && iwarp.Tagged(y.u).TO() > iwarp.Tagged(x.u).TO()
		})
		iwarp.Tagged(x.u).SetTO(iwarp.Tagged(x.u).TO() + 4)
		return x
	},
	"read-response-mismatch": func(find func(int, func(*placed) bool) *placed, _ [][]byte) *placed {
		x := find(7, isOp(iwarp.OpReadResponse))
		iwarp.Tagged(x.u).SetSTag(iwarp.Tagged(x.u).STag() ^ 0x100)
		return x
	},
	"terminate-wrong": func(find func(int, func(*placed) bool) *placed, _ [][]byte) *placed {
		x := find(40, isOp(iwarp.OpSend))
		x.set(iwarp.NewControl(iwarp.OpTerminate, true))
		iwarp.Untagged(x.u).SetQN(iwarp.QueueTerminate)
		iwarp.Untagged(x.u).SetMSN(1)
		copy(x.u[iwarp.UntaggedLen:], []byte{0x17, 0x33, 0, 0})
		return x
	},
	"mpa-depth-over-request": func(_ func(int, func(*placed) bool) *placed, frames [][]byte) *placed {
		for _, b := range frames {
			if bytes.HasPrefix(b, []byte("MPA ID Rep")) {
				binary.BigEndian.PutUint16(b[iwarp.MPAHeaderLen+2:], 999)
			}
		}
		return nil
	},
	"read-depth-exceeded": func(_ func(int, func(*placed) bool) *placed, frames [][]byte) *placed {
		for _, b := range frames {
			if bytes.HasPrefix(b, []byte("MPA ID Req")) {
				binary.BigEndian.PutUint16(b[iwarp.MPAHeaderLen:], 1)
			}
		}
		return nil
	},
}

func isOp(op iwarp.Opcode) func(*placed) bool {
	return func(x *placed) bool { return x.control().Opcode() == op }
}

// TestChangedStream changes one thing in a real capture, which keeps all rules of iWARP as it is.
func TestChangedStream(t *testing.T) {
	rules, err := Select("F4,F8")
	if err != nil {
		t.Fatal(err)
	}
	whole := load(t, filepath.Join(samples, streamCapture))
	good := run(Options{Rules: rules}, whole)
	for _, f := range good.findings {
		t.Error(describeFinding(f))
	}
	for _, id := range []string{"ddp-segment-malformed", "ddp-msn-wrong", "ddp-segment-order", "read-response-mismatch", "read-depth-exceeded", "fpdu-over-segment", "mpa-depth-over-request"} {
		if n := good.check.Count(Lookup(id)); n.Judged == 0 || n.Skipped() > 0 {
			t.Errorf("%s: judged %d times, not %v", id, n.Judged, n.NotJudged)
		}
	}
	for rule, change := range streamChanges {
		t.Run(rule, func(t *testing.T) {
			packets := slices.Clone(whole)
			for i := range packets {
				packets[i].Data = bytes.Clone(packets[i].Data)
			}
			list, frames := segmentsOf(packets)
			x := change(func(n int, is func(*placed) bool) *placed {
				for i := range list {
					if is(&list[i]) {
						if n == 0 {
							return &list[i]
						}
						n--
					}
				}
				t.Fatal("there is no such segment")
				return nil
			}, frames)
			r := run(Options{Rules: rules}, packets)
			n := r.check.Count(Lookup(rule))
			if n.Found == 0 || x != nil && n.First.Number != x.p.Number {
				t.Errorf("found %d, first in frame %d, not judged %v", n.Found, n.First.Number, n.NotJudged)
			}
			for _, f := range r.findings {
				// The depth that a Request lowers is less than that of the Reply, too. A Terminate message takes the
				// place of a Send.
				also := map[string]string{"read-depth-exceeded": "mpa-depth-over-request", "terminate-wrong": "ddp-msn-wrong", "read-response-mismatch": "ddp-segment-order"}[rule]
				if f.Rule.ID != rule && f.Rule.ID != also {
					t.Error(describeFinding(f))
				}
			}
		})
	}
}

// TestStreamRules breaks rules of iWARP in a stream that the test writes.
func TestStreamRules(t *testing.T) {
	untagged := func(op iwarp.Opcode, last bool, msn, mo uint32, n int) []byte {
		return append(iwarp.AppendUntagged(nil, iwarp.NewControl(op, last), 0, msn, mo), make([]byte, n)...)
	}
	tagged := func(op iwarp.Opcode, last bool, stag uint32, to uint64, n int) []byte {
		return append(iwarp.AppendTagged(nil, iwarp.NewControl(op, last), stag, to), make([]byte, n)...)
	}
	read := func(msn, stag, size uint32) []byte {
		return iwarp.AppendReadRequest(untagged(iwarp.OpReadRequest, true, msn, 0, 0), stag, 0, size, 7, 0)
	}
	changed := func(b []byte, at int, x byte) []byte { b[at] ^= x; return b }
	terminate := func(layer iwarp.TerminateLayer, etype, code uint8) []byte {
		return iwarp.AppendTerminate(untagged(iwarp.OpTerminate, true, 1, 0, 0), layer, etype, code, 0, nil, nil)
	}
	type step struct {
		from rdma.Side
		u    []byte
	}
	for name, test := range map[string]struct {
		steps []step
		want  string // rule and packet of each finding
	}{
		"good": {[]step{
			{client, untagged(iwarp.OpSend, false, 1, 0, 100)}, {client, untagged(iwarp.OpSend, true, 1, 100, 10)}, {client, untagged(iwarp.OpSend, true, 2, 0, 10)},
			{client, read(1, 9, 100)}, {client, read(2, 9, 100)}, {server, tagged(iwarp.OpReadResponse, false, 9, 0, 60)}, {server, tagged(iwarp.OpReadResponse, true, 9, 60, 40)},
			{server, tagged(iwarp.OpReadResponse, true, 9, 0, 100)}, {client, tagged(iwarp.OpWrite, false, 5, 1000, 60)}, {client, tagged(iwarp.OpWrite, true, 5, 1060, 60)},
			{client, terminate(iwarp.LayerDDP, 2, 4)},
		}, ""},
		"first MSN":               {[]step{{client, untagged(iwarp.OpSend, true, 2, 0, 9)}}, " ddp-msn-wrong 5"},
		"MSN left out":            {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, untagged(iwarp.OpSend, true, 3, 0, 9)}}, " ddp-msn-wrong 6"},
		"MSN twice":               {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, untagged(iwarp.OpSend, true, 1, 0, 9)}}, " ddp-msn-wrong 6"},
		"MSN of Reads":            {[]step{{client, read(1, 9, 8)}, {client, read(3, 9, 8)}}, " ddp-msn-wrong 6"},
		"offset":                  {[]step{{client, untagged(iwarp.OpSend, false, 1, 0, 100)}, {client, untagged(iwarp.OpSend, true, 1, 104, 9)}}, " ddp-segment-order 6"},
		"first offset":            {[]step{{client, untagged(iwarp.OpSend, true, 1, 4, 9)}}, " ddp-segment-order 5"},
		"within":                  {[]step{{client, untagged(iwarp.OpSend, false, 1, 0, 100)}, {client, tagged(iwarp.OpWrite, true, 5, 0, 9)}}, " ddp-segment-order 6"},
		"Write with a hole":       {[]step{{client, tagged(iwarp.OpWrite, false, 5, 0, 100)}, {client, tagged(iwarp.OpWrite, true, 5, 104, 9)}}, " ddp-segment-order 6"},
		"queue":                   {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, changed(untagged(iwarp.OpSend, true, 2, 0, 9), 9, 3)}}, " ddp-segment-malformed 6"},
		"tagged Send":             {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, changed(untagged(iwarp.OpSend, true, 2, 0, 9), 0, 0x80)}}, " ddp-segment-malformed 6"},
		"version":                 {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, changed(untagged(iwarp.OpSend, true, 2, 0, 9), 0, 3)}}, " ddp-segment-malformed 6"},
		"opcode":                  {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, changed(untagged(iwarp.OpSend, true, 2, 0, 9), 1, 12)}}, " ddp-segment-malformed 6"},
		"short Read Request":      {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, untagged(iwarp.OpReadRequest, true, 1, 0, 24)}}, " ddp-segment-malformed 6"},
		"no Read Request":         {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {server, tagged(iwarp.OpReadResponse, true, 9, 0, 9)}}, " read-response-mismatch 6"},
		"request behind it":       {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {server, tagged(iwarp.OpReadResponse, true, 9, 0, 9)}, {client, read(1, 9, 9)}}, ""},
		"other request behind it": {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {server, tagged(iwarp.OpReadResponse, true, 9, 0, 9)}, {client, read(1, 8, 9)}}, " read-response-mismatch 6"},
		"part of a request behind it": {[]step{
			{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {server, tagged(iwarp.OpReadResponse, false, 9, 0, 8)}, {client, read(1, 9, 16)}, {server, tagged(iwarp.OpReadResponse, true, 9, 8, 8)},
			{client, read(2, 7, 8)}, {server, tagged(iwarp.OpReadResponse, true, 7, 0, 8)},
		}, ""},
		"other memory":        {[]step{{client, read(1, 9, 100)}, {server, tagged(iwarp.OpReadResponse, true, 8, 0, 100)}}, " read-response-mismatch 6"},
		"too much":            {[]step{{client, read(1, 9, 100)}, {server, tagged(iwarp.OpReadResponse, true, 9, 0, 104)}}, " read-response-mismatch 6"},
		"too little":          {[]step{{client, read(1, 9, 100)}, {server, tagged(iwarp.OpReadResponse, true, 9, 0, 96)}}, " read-response-mismatch 6"},
		"answered in reverse": {[]step{{client, read(1, 9, 8)}, {client, read(2, 8, 8)}, {server, tagged(iwarp.OpReadResponse, true, 8, 0, 8)}}, " read-response-mismatch 7"},
		"undefined error":     {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, terminate(iwarp.LayerMPA, 0, 99)}}, " terminate-wrong 6"},
		"undefined layer":     {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, terminate(9, 0, 0)}}, " terminate-wrong 6"},
		"header not there":    {[]step{{client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, changed(terminate(iwarp.LayerDDP, 2, 4), iwarp.UntaggedLen+2, 0x40)}}, " terminate-wrong 6"},
		"goes on": {[]step{
			{client, terminate(iwarp.LayerDDP, 2, 4)}, {client, untagged(iwarp.OpSend, true, 1, 0, 9)}, {client, untagged(iwarp.OpSend, true, 2, 0, 9)},
		}, " terminate-wrong 6"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream()
			s.open()
			for _, x := range test.steps {
				s.segment(x.from, 0, iwarp.AppendFPDU(nil, x.u, false))
			}
			got := ""
			for _, f := range s.run().findings {
				if f.Rule.Number[0] == 'F' {
					got += fmt.Sprintf(" %s %d", f.Rule.ID, f.Ref.Number)
				}
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestMarkers has a marker that does not point to its FPDU. No implementation at hand sends markers.
func TestMarkers(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		s := newStream()
		s.open()
		s.packets = s.packets[:2] // without the MPA frames
		s.seq[client], s.seq[server] = 1001, 0xfffffff1
		s.segment(client, 0, (&iwarp.MPAFrame{Revision: 1, Markers: true}).Append(nil))
		s.segment(server, 0, (&iwarp.MPAFrame{Revision: 1, Reply: true, Markers: true}).Append(nil))
		at := uint64(0)
		for i := range uint32(4) {
			u := append(iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpSend, true), 0, i+1, 0), make([]byte, 700)...)
			f := iwarp.AppendMarkedFPDU(nil, u, false, at)
			if wrong && i == 2 {
				next := (at + iwarp.MarkerInterval - 1) / iwarp.MarkerInterval * iwarp.MarkerInterval
				f[next-at+3] ^= 4
			}
			at += uint64(len(f))
			s.segment(client, 0, f)
		}
		r := s.run()
		if n := r.check.Count(Lookup("mpa-marker-wrong")); n.Judged != 4 || (n.Found == 1) != wrong || wrong && n.First.Number != 7 {
			t.Errorf("wrong %t: %+v", wrong, n)
		}
		for _, f := range r.findings {
			if f.Severity > Note && f.Rule.ID != "mpa-marker-wrong" {
				t.Error(describeFinding(f))
			}
		}
	}
}

// TestFPDUOverSegment has FPDUs that lie in several TCP segments, and says who is known for that.
func TestFPDUOverSegment(t *testing.T) {
	r := run(Options{Rules: All(), Profile: Linux}, load(t, filepath.Join(samples, "iwarp-nfs3-offload.pcap.zst")))
	n := r.check.Count(Lookup("fpdu-over-segment"))
	if n.Found != 2 || n.Known != 2 || n.Worst != Note {
		t.Errorf("%+v", n)
	}
}

// A segment of iWARP that breaks no rule costs no allocation.
func TestStreamAllocations(t *testing.T) {
	s := newStream()
	s.open()
	const rounds = 400
	for i := range uint32(rounds) {
		s.segment(client, 0, iwarp.AppendFPDU(nil, iwarp.AppendReadRequest(iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpReadRequest, true), 0, i+1, 0), 9, 0, 8, 7, 0), false))
		s.segment(server, 0, iwarp.AppendFPDU(nil, append(iwarp.AppendTagged(nil, iwarp.NewControl(iwarp.OpReadResponse, true), 9, 0), make([]byte, 8)...), false))
		s.send(client, make([]byte, 100))
	}
	if n := run(Options{Rules: All()}, s.packets).check.Count(Lookup("read-response-mismatch")); n.Judged != rounds {
		t.Fatalf("%+v", n)
	}
	least := func(checked bool) uint64 {
		n := ^uint64(0)
		for range 5 {
			m, _ := allocations(s.packets, checked)
			n = min(n, m)
		}
		return n
	}
	if with, without := least(true), least(false); with > without+rounds/4 {
		t.Errorf("%d segments: %d allocations with a Checker, %d without", 3*rounds, with, without)
	}
}

// TestSegmentsCut cuts packets of two FPDUs at each byte: a message number that was not captured is none that was left out.
func TestSegmentsCut(t *testing.T) {
	send := func(msn uint32) []byte {
		u := iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpSend, true), 0, msn, 0)
		return iwarp.AppendFPDU(nil, append(u, make([]byte, 40)...), false)
	}
	judged := map[bool]int{}
	whole := len(send(1)) + len(send(2))
	for n := range whole {
		s := newStream()
		s.open()
		s.segment(client, 0, append(send(1), send(2)...))
		p := &s.packets[len(s.packets)-1]
		p.Data = p.Data[:len(p.Data)-whole+n]
		s.segment(client, 0, send(3))
		r := s.run()
		c := r.check.Count(Lookup("ddp-msn-wrong"))
		if c.Found > 0 {
			t.Errorf("%d of %d bytes: %+v", n, whole, r.findings)
		}
		judged[c.Skipped() == 0]++
	}
	if judged[true] == 0 || judged[false] == 0 {
		t.Errorf("%v", judged)
	}
}
