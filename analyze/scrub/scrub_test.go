package scrub

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// packets is a capture in memory.
type packets []capture.Packet

// Read implements capture.Reader.
func (p *packets) Read(b *capture.Batch) error {
	b.Reset()
	n := min(len(*p), 100)
	if n == 0 {
		return io.EOF
	}
	for _, x := range (*p)[:n] {
		b.Append(x)
	}
	*p = (*p)[n:]
	return nil
}

func (p *packets) Problems() ([]*capture.Problem, int) { return nil, 0 }

func (p *packets) Close() error { return nil }

func read(t testing.TB, file string) (all packets) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for r.Read(&b) == nil {
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			all = append(all, p)
		}
	}
	return all
}

// copied are the packets that a Scrubber makes of others.
func copied(t testing.TB, in packets, opt Options) (out packets, s *Scrubber) {
	t.Helper()
	opt.Key = []byte("the key of the tests")
	opt.Write = func(p *capture.Packet) error {
		q := *p
		q.Data = bytes.Clone(p.Data)
		out = append(out, q)
		return nil
	}
	s = New(opt)
	in = append(packets(nil), in...)
	if _, err := s.Run(&in, decode.Options{}); err != nil {
		t.Fatal(err)
	}
	return out, s
}

// scrubbed is the copy of a capture, of which each packet has the length of its original.
func scrubbed(t testing.TB, in packets, opt Options) (packets, Stats) {
	t.Helper()
	out, s := copied(t, in, opt)
	if len(out) != len(in) {
		t.Fatalf("%d packets become %d", len(in), len(out))
	}
	for i := range in {
		a, b := &in[i], &out[i]
		if a.Number != b.Number || a.Time != b.Time || a.Length != b.Length || len(a.Data) != len(b.Data) || a.Link != b.Link || a.Tap != b.Tap {
			t.Fatalf("packet %d: %d of %d bytes at %d become %d of %d at %d", a.Number, len(a.Data), a.Length, a.Time, len(b.Data), b.Length, b.Time)
		}
	}
	if len(s.streams.parts) > 0 || len(s.long) > 0 || len(s.transfers) > 0 {
		t.Errorf("left at the end: %d parts of streams, %d long messages, %d transfers", len(s.streams.parts), len(s.long), len(s.transfers))
	}
	return out, s.Stats()
}

// secrets are what must not be found in the copy: by their first bytes, so that each place of the copy is looked at once.
type secrets struct {
	byHead map[[leastSecret]byte][]secret
	data   map[[dataWindow]byte]bool // windows of file data
}

type secret struct{ what, text string }

const (
	leastSecret = 5
	dataWindow  = 16
)

func (s *secrets) add(what string, b []byte) {
	if len(b) < leastSecret || constant(b, b[0]) || flags(b) || digits(b) || special[string(b)] || known[string(b)] {
		return
	}
	head := [leastSecret]byte(b)
	for _, x := range s.byHead[head] {
		if x.text == string(b) {
			return
		}
	}
	s.byHead[head] = append(s.byHead[head], secret{what, string(b)})
}

// flags reports whether bytes look like booleans and lengths of XDR.
func flags(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c > 1 }) }

// addData adds the windows of file data that have more than a few different bytes, and look unlike small numbers of XDR.
func (s *secrets) addData(b []byte) {
	for i := 0; i+dataWindow <= len(b); i += dataWindow / 2 {
		w := [dataWindow]byte(b[i:])
		different := map[byte]bool{}
		for _, c := range w {
			different[c] = true
		}
		if len(different) > 3 && bytes.Count(w[:], []byte{0}) <= dataWindow/2 {
			s.data[w] = true
		}
	}
}

func (s *secrets) find(t testing.TB, where string, b []byte) {
	t.Helper()
	for i := 0; i+leastSecret <= len(b); i++ {
		for _, x := range s.byHead[[leastSecret]byte(b[i:])] {
			if bytes.HasPrefix(b[i:], []byte(x.text)) {
				t.Fatalf("%s: %s %q at offset %d", where, x.what, x.text, i)
			}
		}
		if i+dataWindow <= len(b) && s.data[[dataWindow]byte(b[i:])] {
			t.Fatalf("%s: file data %x at offset %d", where, b[i:i+dataWindow], i)
		}
	}
}

// collected is a Visitor that collects opaques and texts.
type collected struct{ *secrets }

func (collected) Begin(string, string, int)      {}
func (collected) End()                           {}
func (collected) Uint(string, uint64)            {}
func (collected) Int(string, int64)              {}
func (collected) Bool(string, bool)              {}
func (collected) Enum(string, uint32, string)    {}
func (collected) Flags(string, uint64, string)   {}
func (collected) Time(string, int64, uint32)     {}
func (c collected) String(name string, v []byte) { c.add("text "+name, v) }

func (c collected) Bytes(name string, v []byte) { c.add("opaque "+name, v) }

func (c collected) Data(name string, d xdr.Data) {
	c.add("data "+name, d.Inline)
	c.addData(d.Inline)
}

// dataOf collects what chunks carry, but for messages.
type dataOf struct {
	*secrets
	moves map[transferKey]bool
}

func (d *dataOf) Unmatched(_ *rdma.Connection, s *rdma.Send) {
	if len(s.Data) > dataWindow { // not an address with its key, which rping sends, and which its RDMA READ names
		d.addData(s.Data)
	}
}

func (d *dataOf) Operation(tx *transaction.Transaction, op *rdma.Op) {
	if tx != nil {
		_, message := messageAt(&tx.Call.Header, op)
		d.moves[keyOf(tx.Connection, op)] = !message
	}
}

func (d *dataOf) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	if d.moves[keyOf(c, op)] {
		d.addData(f.Data)
	}
}

// secretsOf collects what a capture tells.
func secretsOf(t testing.TB, in packets) *secrets {
	s := &secrets{byHead: map[[leastSecret]byte][]secret{}, data: map[[dataWindow]byte]bool{}}
	var view rpc.View
	o := &dataOf{s, map[transferKey]bool{}}
	opt := decode.Options{Observers: []decode.Observer{{Unmatched: o.Unmatched, Operation: o.Operation, OpData: o.OpData}}}
	d := decode.New(opt, func(tx *transaction.Transaction) {
		view.SetAll(tx)
		for _, m := range []xdr.Message{view.Args(), view.Result()} {
			if m != nil {
				m.Walk(collected{s})
			}
		}
		var c oncrpc.Call
		if c.Decode(tx.Call.Payload, tx.Call.PayloadLength) == nil {
			var sys oncrpc.Sys
			if sys.Decode(c.Cred.Body) {
				s.add("machine", sys.Machine)
			}
			s.add("context", c.GSS.Handle)
			s.add("verifier", c.Verf.Body)
			if k := c.Protection().Kind(); k != oncrpc.BodyPlain {
				s.addData(c.Body().Data)
			}
		}
	})
	copied := append(packets(nil), in...)
	if err := d.Run(&copied); err != nil {
		t.Fatal(err)
	}
	var f link.Frame
	for _, p := range in {
		link.Decode(p.Link, p.Data, p.Length, &f)
		if p.Link == capture.LinkEthernet && len(p.Data) >= 12 {
			for _, mac := range [][]byte{p.Data[:6], p.Data[6:12]} {
				s.add("MAC address", mac)
			}
		}
		for _, a := range []interface{ AsSlice() []byte }{f.Src, f.Dst} {
			if b := a.AsSlice(); len(b) == 16 {
				s.add("IPv6 address", b)
			}
		}
		if f.Src.IsValid() {
			s.add("address", []byte(f.Src.String()))
			s.add("address", []byte(f.Dst.String()))
		}
	}
	return s
}

// search looks for secrets in the packets of a copy, and in what they carry.
func search(t testing.TB, s *secrets, out packets) {
	t.Helper()
	for i := range out {
		s.find(t, fmt.Sprintf("packet %d", out[i].Number), out[i].Data)
	}
	eachMessage(t, out, func(number uint64, b []byte) { s.find(t, fmt.Sprintf("message of %d", number), b) })
}

// eachMessage visits the messages of a capture.
func eachMessage(t testing.TB, in packets, visit func(number uint64, b []byte)) {
	t.Helper()
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		for _, m := range []*transaction.Message{&tx.Call, &tx.Reply} {
			visit(m.Last.Number, m.Raw())
			visit(m.Last.Number, m.Payload)
		}
	})
	copied := append(packets(nil), in...)
	if err := d.Run(&copied); err != nil {
		t.Fatal(err)
	}
}

// few are samples of all fabrics with all kinds of messages.
var few = []string{
	"rocev2-nfs3-longcall.pcap", "rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs41-ipv6.pcap.zst", "iwarp-nfs3-loss.pcap.zst",
	"iwarp-nfs3-offload.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst", "rocev2-nfs3-snaplen256.pcap.zst", "rocev2-nfs42-basic.pcap.zst",
	"rocev2-nfs41-midstream.pcap.zst", "iwarp-nfs41-midstream.pcap.zst", "rocev2-rping.pcap", "kerberos/rocev2-nfs3-krb5i.pcap.zst", "kerberos/rocev2-nfs41-krb5p.pcap.zst",
}

// more are the captures in the directories that RPCRDMA_CAPTURES names, as test/scrub/run has it.
func more(t *testing.T) (files []string) {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("RPCRDMA_CAPTURES")) {
		for _, pattern := range []string{"*.pcap*", "*.erf"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
	}
	return files
}

// sample is a file of the samples, or one that has a path of its own.
func sample(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join("../../samples", name)
}

// TestNothingTold: no name, no address and no data of a sample is in its copy, however small the window.
func TestNothingTold(t *testing.T) {
	names := few
	if testing.Short() {
		names = few[:4]
	}
	for _, name := range slices.Concat(names, more(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := read(t, sample(name))
			s := secretsOf(t, in)
			if !filepath.IsAbs(name) && len(s.byHead) < 4 {
				t.Errorf("only %d secrets found", len(s.byHead))
			}
			out, st := scrubbed(t, in, Options{})
			search(t, s, out)
			if !filepath.IsAbs(name) && st.Late+st.Malformed > 0 {
				t.Errorf("%+v", st)
			}
			out, _ = scrubbed(t, in, Options{Window: 20000})
			search(t, s, out)
		})
	}
}

// TestCanaries: what tests of the search rest on: secrets are found where they are.
func TestCanaries(t *testing.T) {
	in := read(t, "../../samples/rocev2-nfs41-recall.pcap")
	s := secretsOf(t, in)
	for _, want := range []string{"deleg1", "Linux NFSv4.1 client", "client", "192.0.2.1", "export", "server"} {
		found := false
		for _, x := range s.byHead[[leastSecret]byte([]byte(want))] {
			found = found || x.text == want
		}
		if !found {
			t.Errorf("%q is no secret", want)
		}
	}
	if len(s.data) == 0 {
		t.Error("no file data")
	}
}

// TestMutated: nor is anything of a sample in the copy of what has been made of it by chance.
func TestMutated(t *testing.T) {
	for _, name := range slices.Concat(few[:3], more(t)) {
		in := read(t, sample(name))
		s := secretsOf(t, in)
		seeds := uint32(sampled.Rounds(12))
		if filepath.IsAbs(name) {
			seeds = 2
		}
		for seed := range seeds {
			out, _ := scrubbed(t, mutated(in, seed), Options{})
			search(t, s, out)
		}
	}
}

// mutated changes packets behind their network headers, drops, doubles and swaps some.
func mutated(in packets, seed uint32) (out packets) {
	const headers = 42
	rnd := seed*2654435761 + 12345
	next := func(n int) int {
		rnd = rnd*1664525 + 1013904223
		return int(rnd>>8) % n
	}
	for i := range in {
		p := in[i]
		switch next(30) {
		case 0:
			continue
		case 1:
			out = append(out, p)
		case 2:
			if len(p.Data) > headers {
				p.Data = bytes.Clone(p.Data)
				at := headers + next(len(p.Data)-headers)
				mutate.Word(p.Data[at:], next(8), mutate.Step{Value: rnd, Where: uint16(rnd >> 7)}, nil)
			}
		case 3:
			p.Data = p.Data[:next(len(p.Data)+1)]
		case 4:
			if len(out) > 0 {
				p, out[len(out)-1] = out[len(out)-1], p
			}
		}
		out = append(out, p)
	}
	for i := range out {
		out[i].Number = uint64(i + 1)
	}
	return out
}

// TestSame: the same key gives the same copy, and what is kept on request is as it was.
func TestSame(t *testing.T) {
	in := read(t, "../../samples/iwarp-nfs41-recall.pcap")
	one, _ := scrubbed(t, in, Options{})
	two, _ := scrubbed(t, in, Options{Window: 1 << 20})
	for i := range one {
		if !bytes.Equal(one[i].Data, two[i].Data) {
			t.Fatalf("packet %d differs", one[i].Number)
		}
	}
}

// TestKeepData: data of files stays on request, and nothing else that would not.
func TestKeepData(t *testing.T) {
	names := []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "kerberos/rocev2-nfs3-krb5i.pcap.zst", "iwarp-nfs3-offload.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst"}
	if testing.Short() {
		names = names[:3]
	}
	for _, name := range names {
		in := read(t, filepath.Join("../../samples", name))
		out, st := scrubbed(t, in, Options{KeepData: true})
		s := secretsOf(t, in)
		found := 0
		for i := range out {
			for at := range max(len(out[i].Data)-dataWindow, 0) {
				if s.data[[dataWindow]byte(out[i].Data[at:])] {
					found++
				}
			}
		}
		if found*10 < len(s.data)*9 != strings.HasPrefix(name, "kerberos/") || st.Late > 0 {
			t.Errorf("%s: %d of %d windows of data; %+v", name, found, len(s.data), st)
		}
		clear(s.data)
		for head, all := range s.byHead { // the lines of these files have their names
			s.byHead[head] = slices.DeleteFunc(all, func(x secret) bool { return strings.HasPrefix(x.what, "data") || strings.HasPrefix(x.what, "text") })
		}
		search(t, s, out)
	}
}

// FuzzScrub copies arbitrary packets.
func FuzzScrub(f *testing.F) {
	for _, name := range few[:3] {
		var b []byte
		for i, p := range read(f, filepath.Join("../../samples", name)) {
			if i < 20 {
				b = binary.BigEndian.AppendUint16(b, uint16(len(p.Data)))
				b = append(b, p.Data...)
			}
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in packets
		for n := 1; len(b) >= 2; n++ {
			size := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			in = append(in, capture.Packet{Number: uint64(n), Time: int64(n) * 1e6, Length: uint32(size), Link: capture.LinkEthernet, Data: b[2 : 2+size]})
			b = b[2+size:]
		}
		if len(in) == 0 {
			return
		}
		scrubbed(t, in, Options{Window: 1 << 20})
	})
}
