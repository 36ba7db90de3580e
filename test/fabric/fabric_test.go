package fabric_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	analysis "github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/test/fabric"
)

var table = flag.Bool("table", false, "print what was injected beside what was found")

// files are the captures with a truth: those of testdata, and of the directories that RPCRDMA_FABRIC names.
func files(t *testing.T) []string {
	t.Helper()
	list, _ := filepath.Glob("testdata/*.json")
	if len(list) < 5 {
		t.Fatal(list)
	}
	for _, dir := range filepath.SplitList(os.Getenv("RPCRDMA_FABRIC")) {
		more, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		if len(more) == 0 {
			t.Fatalf("no captures with truth in %s", dir)
		}
		list = append(list, more...)
	}
	return list
}

// without omits frames.
type without struct {
	capture.Reader
	lost map[uint64]bool
}

func (r *without) Read(b *capture.Batch) error {
	err := r.Reader.Read(b)
	b.Packets = slices.DeleteFunc(b.Packets, func(p capture.Packet) bool { return r.lost[p.Number] })
	return err
}

// found is what the analysis says about a capture.
type found struct {
	episodes []analysis.Episode
	totals   analysis.Totals
	frames   map[uint64]*frame
	conns    map[*rdma.Connection]bool
}

// frame is what this test itself reads of a packet.
type frame struct {
	number   uint64
	src      string
	opcode   byte
	psn, qp  uint32
	syndrome byte
	roce     bool
	tcp      bool
	seq, ack uint32
	n        int
	flags    byte
}

func read(p *capture.Packet) *frame {
	d := p.Data
	if len(d) < 42 || d[12] != 8 || d[13] != 0 || d[14] != 0x45 {
		return nil
	}
	f := &frame{number: p.Number, src: string(d[26:30])}
	total := int(binary.BigEndian.Uint16(d[16:]))
	switch {
	case d[23] == 17 && binary.BigEndian.Uint16(d[36:]) == 4791 && len(d) >= 54:
		f.roce, f.opcode = true, d[42]
		f.qp, f.psn = binary.BigEndian.Uint32(d[46:])&0xffffff, binary.BigEndian.Uint32(d[50:])&0xffffff
		if len(d) > 54 {
			f.syndrome = d[54]
		}
	case d[23] == 6 && len(d) >= 54:
		f.tcp = true
		f.seq, f.ack, f.flags = binary.BigEndian.Uint32(d[38:]), binary.BigEndian.Uint32(d[42:]), d[47]
		f.n = total - 20 - int(d[46]>>4)*4
	}
	return f
}

func record(t *testing.T, file string, lost map[uint64]bool) *found {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := &found{frames: make(map[uint64]*frame), conns: make(map[*rdma.Connection]bool)}
	rec := analysis.New(analysis.Options{Episode: func(e *analysis.Episode) {
		kept := *e
		kept.Lost = slices.Clone(e.Lost)
		f.episodes = append(f.episodes, kept)
	}})
	d := decode.New(decode.Options{Observers: []decode.Observer{rec.Observer(), {Packet: func(v *decode.PacketView) {
		if x := read(v.Packet); x != nil {
			f.frames[x.number] = x
		}
	}, Closed: func(c *rdma.Connection) { f.conns[c] = true }}}}, func(*transaction.Transaction) {})
	if err := d.Run(&without{r, lost}); err != nil {
		t.Fatal(err)
	}
	f.totals = rec.Totals()
	return f
}

// Opcodes of the RC service (IBTA volume 1, table 38).
func (f *frame) rc() bool      { return f.roce && f.opcode>>5 == 0 }
func (f *frame) answers() bool { return f.opcode >= 13 && f.opcode <= 18 }
func (f *frame) ackOnly() bool { return f.opcode == 17 && f.syndrome>>5 == 0 }
func (f *frame) nak() bool     { return f.opcode == 17 && f.syndrome == 0x60 }
func (f *frame) data() bool    { return f.tcp && f.n > 0 }
func psnLess(a, b uint32) bool { return int32((a-b)<<8) < 0 }
func seqLess(a, b uint32) bool { return int32(a-b) < 0 }
func refs(e *analysis.Episode) []rdma.Ref {
	return []rdma.Ref{e.LostAt, e.Detected, e.NAK, e.First, e.CaughtUp}
}

// span is the first and the last packet of an episode.
func span(e *analysis.Episode) (first, last uint64) {
	for _, r := range refs(e) {
		if r.Seen() && (first == 0 || r.Number < first) {
			first = r.Number
		}
		last = max(last, r.Number)
	}
	if !e.CaughtUp.Seen() {
		last = 1 << 62
	}
	return first, last
}

// of reports whether a frame belongs to the direction of an episode: a request of its requester,
// or an answer to one.
func of(x *frame, e *analysis.Episode) bool {
	c := e.Connection.Resolve()
	from := c.Ends[e.From]
	mine := string(from.Addr.AsSlice()) == x.src
	if x.tcp {
		return true // one connection at a time
	}
	if mine == x.answers() {
		return false
	}
	to := c.Ends[e.From.Other()].QPN
	if x.answers() {
		to = from.QPN
	}
	return x.qp == to
}

// names reports whether an episode says that it lost the packet.
func names(e *analysis.Episode, x *frame) bool {
	for _, g := range e.Lost {
		if d := int32((x.psn-uint32(g.Start))<<8) >> 8; x.roce && d >= 0 && uint64(d) < g.Count {
			return true
		}
	}
	return false
}

// made reports whether the loss of an acknowledgement had no effect: a later one came before the
// sender reacted.
func made(all []*frame, x *frame, lost map[uint64]bool) bool {
	if !x.roce && x.data() || x.roce && !x.ackOnly() {
		return false
	}
	high := uint32(0)
	for _, y := range all {
		if y.number < x.number {
			if y.tcp && y.src != x.src && y.data() && (high == 0 || seqLess(high, y.seq+uint32(y.n))) {
				high = y.seq + uint32(y.n)
			}
			continue
		}
		if y.number == x.number || y.tcp != x.tcp {
			continue
		}
		if y.src == x.src {
			switch {
			case lost[y.number]:
			case y.tcp && !seqLess(y.ack, x.ack):
				return true
			case y.roce && y.rc() && y.qp == x.qp && y.answers() && (!psnLess(y.psn, x.psn) && !y.nak() || y.nak() && psnLess(x.psn, y.psn)):
				return true
			}
			continue
		}
		// The sender retransmits.
		if y.tcp && y.data() && high != 0 && seqLess(y.seq, high) && seqLess(y.seq, x.ack) {
			return false
		}
	}
	return false
}

// TestInjected: each packet that netem dropped behind the capture point is in exactly one
// episode, or an acknowledgement replaced by a later one; and each episode has such a packet. The
// same holds if the lost packets are removed, as in a capture behind netem.
func TestInjected(t *testing.T) {
	for _, file := range files(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			truth, err := fabric.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(truth.Lost) != truth.Dropped {
				t.Fatalf("%d lost frames are known, netem dropped %d", len(truth.Lost), truth.Dropped)
			}
			matches, _ := filepath.Glob(strings.TrimSuffix(file, ".json") + ".pcap*")
			if len(matches) != 1 {
				t.Fatal(matches)
			}
			lost := make(map[uint64]bool)
			for _, n := range truth.Lost {
				lost[n] = true
			}
			whole := record(t, matches[0], nil)
			var all []*frame
			for _, x := range whole.frames {
				all = append(all, x)
			}
			slices.SortFunc(all, func(a, b *frame) int { return int(int64(a.number) - int64(b.number)) })
			compare(t, "before netem", truth, all, lost, whole)
			counters(t, truth, all, lost, whole)
			if len(lost) > 0 {
				compare(t, behind, truth, all, lost, record(t, matches[0], lost))
			}
		})
	}
}

// candidate reports whether a loss may be the cause of an episode, or belong to it.
func candidate(x *frame, e *analysis.Episode, f *found) bool {
	first, last := span(e)
	if !of(x, e) || x.number > last {
		return false
	}
	if x.number >= first || names(e, x) {
		return true
	}
	if x.tcp {
		// What is sent again first was lost, and maybe others behind it; an acknowledgement is missed when a timer expires.
		y := f.frames[e.First.Number]
		if y == nil || y.src == x.src && !x.data() {
			return false
		}
		return y.src == x.src && !seqLess(x.seq, y.seq) && x.number < e.First.Number || y.src != x.src && !x.data() && seqLess(y.seq, x.ack)
	}
	// The sender misses an answer when it begins to wait for it again.
	return x.answers() && e.First.Seen() && x.number < e.First.Number
}

func compare(t *testing.T, where string, truth *fabric.Truth, all []*frame, lost map[uint64]bool, f *found) {
	t.Helper()
	var losses []*frame
	management := 0
	for _, n := range truth.Lost {
		i := slices.IndexFunc(all, func(x *frame) bool { return x.number == n })
		if i < 0 || !(all[i].rc() || all[i].tcp) || all[i].tcp && all[i].flags&3 != 0 {
			management++
			continue
		}
		losses = append(losses, all[i])
	}
	slices.SortFunc(losses, func(a, b *frame) int { return int(int64(a.number) - int64(b.number)) })
	// Each loss belongs to the first episode after it, or to the one that it is in; an episode
	// that ended with a lost packet is followed by another one.
	in := make([][]int, len(losses))
	for i, x := range losses {
		up := made(all, x, lost)
		for j := range f.episodes {
			// A lost acknowledgement that was replaced by a later one explains no episode that
			// begins after that.
			first, _ := span(&f.episodes[j])
			if candidate(x, &f.episodes[j], f) && !(up && x.number < first) {
				in[i] = append(in[i], j)
			}
		}
		slices.SortStableFunc(in[i], func(a, b int) int {
			fa, _ := span(&f.episodes[a])
			fb, _ := span(&f.episodes[b])
			return int(int64(fa) - int64(fb))
		})
	}
	// Each episode has a loss of its own.
	cause := make([]int, len(f.episodes))
	for j := range cause {
		cause[j] = -1
	}
	var assign func(i int, seen []bool) bool
	assign = func(i int, seen []bool) bool {
		for _, j := range in[i] {
			if seen[j] {
				continue
			}
			seen[j] = true
			if cause[j] < 0 || assign(cause[j], seen) {
				cause[j] = i
				return true
			}
		}
		return false
	}
	harmless, told, invisible := 0, 0, 0
	reordered := f.totals.Reordered
	for i, x := range losses {
		assign(i, make([]bool, len(f.episodes)))
		switch {
		case len(in[i]) > 0:
			told++
		case made(all, x, lost):
			harmless++
		case where == behind && inOrder(all, x, lost):
			invisible++
		case where == behind && x.data() && reordered > 0:
			// Sent again within a millisecond: its timestamp is not younger than that of the segment behind it.
			reordered--
			invisible++
		default:
			t.Errorf("%s: frame %d was lost, and no episode has it: %+v", where, x.number, *x)
		}
	}
	probes := truth.Server["TcpExtTCPLossProbes"] + truth.Client["TcpExtTCPLossProbes"]
	fast := truth.Server["TcpExtTCPFastRetrans"] + truth.Client["TcpExtTCPFastRetrans"]
	for j := range f.episodes {
		e := &f.episodes[j]
		first, last := span(e)
		line := ""
		switch {
		case cause[j] >= 0:
			line = fmt.Sprint("frame ", losses[cause[j]].number)
		case e.Notice == analysis.ByTimer && probes > 0:
			probes-- // TCP probes the tail of what it sent, also if nothing is lost (RFC 8985, section 7)
			line = "none: a probe of TCP"
		case e.Notice == analysis.ByDupAcks && strings.Contains(truth.Netem, "reorder") && fast > 0:
			fast-- // TCP took an overtaken segment for lost, and the kernel counted it
			line = "none: overtaken"
		default:
			t.Errorf("%s: nothing was lost in the episode of frames %d to %d: %v %v, lost at %d, first sent again %d", where, first, last, e.Notice, e.Lost, e.LostAt.Number, e.First.Number)
		}
		if *table {
			fmt.Printf("%-12s %-18s frames %5d to %5d, %3d sent again, cause %s\n", where, e.Notice, first, last, e.Resent, line)
		}
	}
	if *table {
		fmt.Printf("%-12s %d lost: %d in %d episodes, %d acknowledgements that later ones made up for, %d that this place cannot show, %d of setup or ARP\n",
			where, len(truth.Lost), told, len(f.episodes), harmless, invisible, management)
	}
}

// behind is a capture that has not seen the lost packets.
const behind = "behind netem"

// inOrder reports whether a request came again before anything behind it: at this place it was seen once, and late.
func inOrder(all []*frame, x *frame, lost map[uint64]bool) bool {
	for _, y := range all {
		if y.number <= x.number || y.src != x.src || lost[y.number] || y.tcp != x.tcp {
			continue
		}
		switch {
		case x.tcp && y.data():
			return y.seq == x.seq
		case x.roce && y.rc() && y.qp == x.qp && y.answers() == x.answers():
			return y.psn == x.psn
		}
	}
	return true // it never came
}

// counters compares with the kernels' counters.
func counters(t *testing.T, truth *fabric.Truth, all []*frame, lost map[uint64]bool, f *found) {
	t.Helper()
	doubled := make(map[uint64]bool)
	for _, n := range truth.Doubled {
		doubled[n] = true
	}
	var naks, lostNAKs uint32
	sent, got := map[string]int64{}, map[string]int64{}
	for _, x := range all {
		if !x.roce {
			continue
		}
		sent[x.src]++
		if !lost[x.number] {
			got[x.src]++
		}
		if doubled[x.number] {
			got[x.src]++
		}
		if x.nak() && lost[x.number] {
			lostNAKs++
		}
	}
	for i := range f.episodes {
		naks += f.episodes[i].NAKs
	}
	const server, client = "\xc0\x00\x02\x01", "\xc0\x00\x02\x02"
	equal := func(what string, ours, theirs int64) {
		t.Helper()
		if ours != theirs {
			t.Errorf("%s: %d, the kernels counted %d", what, ours, theirs)
		}
		if *table {
			fmt.Printf("%-12s %-40s %6d %6d\n", "counters", what, ours, theirs)
		}
	}
	if _, ok := truth.Server["sent_pkts"]; ok {
		equal("packets of the server (sent_pkts)", sent[server], truth.Server["sent_pkts"])
		equal("packets of the client (sent_pkts)", sent[client], truth.Client["sent_pkts"])
		equal("that the server got (rcvd_pkts)", got[client], truth.Server["rcvd_pkts"])
		equal("that the client got (rcvd_pkts)", got[server], truth.Client["rcvd_pkts"])
		equal("sequence NAKs (out_of_seq_request)", int64(naks), truth.Server["out_of_seq_request"]+truth.Client["out_of_seq_request"])
		// rxe counts a received NAK only if it acknowledges something.
		if came := truth.Server["rcvd_seq_err"] + truth.Client["rcvd_seq_err"]; int64(naks-lostNAKs) < came {
			t.Errorf("%d NAKs came, the kernels counted %d", naks-lostNAKs, came)
		}
		return
	}
	// The kernel counts a FIN that it sends again, too.
	fins := make(map[string]uint32)
	again := int64(0)
	for _, x := range all {
		if x.tcp && x.flags&1 != 0 && x.n == 0 {
			key := fmt.Sprint(x.src, x.seq)
			if fins[key]++; fins[key] > 1 {
				again++
			}
		}
	}
	equal("segments sent again (TcpRetransSegs)", int64(f.totals.Resent)+again,
		truth.Server["TcpRetransSegs"]+truth.Client["TcpRetransSegs"]-truth.Server["TcpExtTCPSynRetrans"]-truth.Client["TcpExtTCPSynRetrans"])
}
