package clitest

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// Wrap is a command for scripts that puts the packets of a capture into a
// tunnel: wrap KIND ID FROM TO.
func Wrap(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: wrap KIND ID FROM TO")
	}
	id, err := strconv.ParseUint(args[1], 0, 32)
	ts.Check(err)
	var out bytes.Buffer
	ts.Check(wrap.Copy(args[0], uint32(id), ts.MkAbs(args[2]), &out))
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), out.Bytes(), 0o644))
}

// Snap is a command for scripts that cuts the packets of a capture, as a short
// snapshot length does: snap BYTES FROM TO.
func Snap(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: snap BYTES FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	rewrite(ts, args[1], args[2], func(p *capture.Packet) bool {
		p.Data = p.Data[:min(n, len(p.Data))]
		return true
	})
}

// Mirror is a command for scripts that cuts the packets of a capture, as a mirror does that sends the beginnings of packets:
// mirror BYTES FROM TO.
func Mirror(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: mirror BYTES FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	rewrite(ts, args[1], args[2], func(p *capture.Packet) bool {
		p.Data = p.Data[:min(n, len(p.Data))]
		p.Length = uint32(len(p.Data))
		return true
	})
}

// SentBy is a command for scripts that keeps the IP packets that one address sent, as a
// mirror of one direction does: sentby ADDRESS FROM TO.
func SentBy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sentby ADDRESS FROM TO")
	}
	a, err := netip.ParseAddr(args[0])
	ts.Check(err)
	var f link.Frame
	rewrite(ts, args[1], args[2], func(p *capture.Packet) bool {
		link.Decode(p.Link, p.Data, p.Length, &f)
		return f.Src == a
	})
}

// Double is a command for scripts that writes each packet a second time, 5 µs later, as a mirror of two ports does: double FROM TO.
func Double(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: double FROM TO")
	}
	list := load(ts, args[0])
	for _, p := range list {
		p.Time += 5000
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b capture.Packet) int { return cmp.Compare(a.Time, b.Time) })
	store(ts, args[1], list)
}

// rewrite copies the packets for which keep, which may change them, returns true.
func rewrite(ts *testscript.TestScript, from, to string, keep func(*capture.Packet) bool) {
	var list []capture.Packet
	for _, p := range load(ts, from) {
		if keep(&p) {
			list = append(list, p)
		}
	}
	store(ts, to, list)
}

func store(ts *testscript.TestScript, name string, list []capture.Packet) {
	var out bytes.Buffer
	w := capture.NewWriter(&out, capture.WriterOptions{})
	for i := range list {
		ts.Check(w.Write(&list[i]))
	}
	ts.Check(w.Flush())
	ts.Check(os.WriteFile(ts.MkAbs(name), out.Bytes(), 0o644))
}

// Timeless is a command for scripts that sets the time of each packet to zero: timeless FROM TO.
func Timeless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: timeless FROM TO")
	}
	rewrite(ts, args[0], args[1], func(p *capture.Packet) bool {
		p.Time = 0
		return true
	})
}

// SetBack is a command for scripts that has the clock set back by an hour at a packet: setback FROM TO PACKET.
func SetBack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: setback FROM TO PACKET")
	}
	at, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	rewrite(ts, args[0], args[1], func(p *capture.Packet) bool {
		if p.Number >= at {
			p.Time -= 3600e9
		}
		return true
	})
}

// Within is a command for scripts that demands that captures hold packets of
// another one, in its order, with its times and all their bytes: within WHOLE
// PART...
func Within(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: within WHOLE PART...")
	}
	whole := load(ts, args[0])
	for _, name := range args[1:] {
		part, at := load(ts, name), 0
		if len(part) == 0 {
			ts.Fatalf("%s has no packets", name)
		}
		for _, p := range part {
			for at < len(whole) && (whole[at].Time != p.Time || whole[at].Link != p.Link || whole[at].Length != p.Length || !bytes.Equal(whole[at].Data, p.Data)) {
				at++
			}
			if at++; at > len(whole) {
				ts.Fatalf("%s: packet %d is not in %s", name, p.Number, args[0])
			}
		}
	}
}

func load(ts *testscript.TestScript, name string) (list []capture.Packet) {
	r, err := capture.Open([]string{ts.MkAbs(name)}, capture.Options{})
	ts.Check(err)
	defer r.Close()
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return list
		}
		ts.Check(err)
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			list = append(list, p)
		}
	}
}
