package planner

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// FuzzReader reads plans of samples whose lines are changed: the tables, and six ops starting at
// from. Whatever is accepted can be written and read again unchanged.
func FuzzReader(f *testing.F) {
	var tables, ops [2][][]byte
	for i, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap"} {
		for _, l := range bytes.SplitAfter(readFile(f, build(f, filepath.Join(samples, name), Options{})), []byte("\n")) {
			if bytes.HasPrefix(l, []byte(`{"op"`)) || bytes.HasPrefix(l, []byte(`{"skip"`)) {
				ops[i] = append(ops[i], l)
			} else if len(l) > 0 {
				tables[i] = append(tables[i], l)
			}
		}
		for from := 0; from < len(ops[i]); from += 6 {
			f.Add(uint8(i), uint8(from), []byte{})
		}
	}
	f.Fuzz(func(t *testing.T, which, from uint8, program []byte) {
		k := int(which) % len(ops)
		at := int(from) % len(ops[k])
		lines := append(slices.Clone(tables[k]), ops[k][at:min(len(ops[k]), at+6)]...)
		b := bytes.Join(mutate.Units(lines, program, 64<<10), nil)
		r, err := plan.NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		defer r.Close()
		var out bytes.Buffer
		w := plan.NewWriter(&out)
		if err := w.Tables(&r.Tables); err != nil {
			t.Fatal(err)
		}
		l := &loaded{Tables: &r.Tables}
		for {
			o, s, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return
			}
			if s != nil {
				err = w.Skip(s)
			} else {
				big := false
				each(o, func(f *plan.Field) { big = big || f.Data != nil && f.Data.Length > 1<<20 })
				if !big {
					_, _, _ = o.AppendArgs(nil, nil, &asCaptured{l: l})
				}
				_ = o.Layout.Transport()
				err = w.Op(o)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := plan.NewReader(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if _, err := again.All(); err != nil {
			t.Fatal(err)
		}
	})
}

// The programs of FuzzBuilder's transactions.
var fuzzPrograms = [...]uint32{nfs4.NFS4_PROGRAM, nfsacl.NFS_ACL_PROGRAM, nfs4.NFS4_CALLBACK, mount.MOUNT_PROGRAM}

// transactions returns those of a capture whose messages travel inline, each as
//
//	program, version, procedure, flags, connection, 0, length of arguments (2), arguments, results
func transactions(t testing.TB, packets []capture.Packet) (list [][]byte) {
	var v rpc.View
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		p := slices.Index(fuzzPrograms[:], tx.Program)
		if p < 0 || v.CallErr != nil || v.ReplyErr != nil || v.CallBody().Kind != oncrpc.BodyPlain || v.ReplyBody().Kind != oncrpc.BodyPlain ||
			len(v.CallBody().Data) != v.CallBody().Length || len(tx.Call.Header.Reads) > 0 || len(tx.Reply.Header.Writes) > 0 {
			return
		}
		flags := byte(3)
		if tx.Backward {
			flags |= 32
		}
		b := []byte{byte(p), byte(tx.Version), byte(tx.Procedure), flags, byte(tx.Connection.ID), 0}
		b = binary.BigEndian.AppendUint16(b, uint16(len(v.CallBody().Data)))
		list = append(list, append(append(b, v.CallBody().Data...), v.ReplyBody().Data...))
	})
	traffic.Run(d, packets, 64)
	return list
}

// wholeSample reads a capture.
func wholeSample(t testing.TB, name string) (packets []capture.Packet) {
	r, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for r.Read(&b) == nil {
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			packets = append(packets, p)
		}
	}
	return packets
}

// FuzzBuilder makes a plan from changed transactions of real captures: six of a capture, starting
// at from, changed as the program says. The plan can be read, and keeps the rules.
func FuzzBuilder(f *testing.F) {
	var sources [][][]byte
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap"} {
		sources = append(sources, transactions(f, wholeSample(f, name)))
	}
	for i := range traffic.Count() {
		if list := transactions(f, traffic.Apply(uint8(i), nil)); len(list) > 1 {
			sources = append(sources, list)
		}
	}
	for i := range sources {
		for from := 0; from < len(sources[i]); from += 5 {
			f.Add(uint8(i), uint8(from), []byte{})
		}
	}
	dir := fastDir(f)
	f.Fuzz(func(t *testing.T, which, from uint8, program []byte) {
		list := sources[int(which)%len(sources)]
		at := int(from) % len(list)
		built(t, filepath.Join(dir, "fuzz.json"), mutate.Units(list[at:min(len(list), at+5)], program, 2000), mutate.Sample(program, 8))
	})
}

// fastDir is a directory for short-lived files: in memory, if there is one.
func fastDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "plan") //nolint:usetesting // TempDir is on a disk as a rule
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestFound makes plans of what FuzzBuilder has found.
func TestFound(t *testing.T) {
	for name, units := range map[string][][]byte{
		// An object was found by a name in itself.
		"old": {append([]byte{0, 3, 8, 'A', '0', 0, 0xff, 0xff}, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0000000000000000000000000000000000000000000000"...)},
	} {
		t.Run(name, func(t *testing.T) { built(t, filepath.Join(t.TempDir(), "fuzz.json"), units, true) })
	}
}

// built makes a plan from FuzzBuilder's transactions and checks it; a thorough check also writes
// it again and compares.
func built(t *testing.T, out string, units [][]byte, thorough bool) {
	opt := Options{Objects: 1000}
	if len(units)%4 != 0 {
		opt.Payload = plan.Pattern
	}
	b, err := NewBuilder(out, opt)
	if err != nil {
		t.Fatal(err)
	}
	conns := [4]*rdma.Connection{}
	for i := range conns {
		conns[i] = &rdma.Connection{ID: i + 1, Fabric: rdma.RoCEv2, Ends: [2]rdma.End{
			{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + i/2)}), QPN: 17},
			{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + 200*(i%2))}), QPN: 17}, // a server with two addresses, or two
		}}
	}
	var view rpc.View
	now := int64(1e18)
	for i, u := range units {
		if len(u) < 8 {
			continue
		}
		n := uint64(i + 1)
		program, version, procedure, flags, conn := fuzzPrograms[u[0]%4], uint32(u[1]), uint32(u[2]), u[3], u[4]
		na := min(int(binary.BigEndian.Uint16(u[6:])), len(u)-8)
		args, result := u[8:8+na], u[8+na:]
		c := oncrpc.Call{XID: uint32(n), RPCVersion: 2, Program: program, Version: version, Procedure: procedure}
		tx := &transaction.Transaction{
			Connection: conns[conn%4], XID: uint32(n), Program: program, Version: version, Procedure: procedure, Named: true,
			Backward: flags&32 != 0,
		}
		now += int64(flags & 7)
		tx.Call.Payload = append(c.Append(nil), args...)
		tx.Call.PayloadLength = len(tx.Call.Payload) + int(flags>>6)
		tx.Call.First = rdma.Ref{Time: now, Number: 2 * n}
		tx.Call.Last = tx.Call.First
		if flags&8 == 0 {
			p := append(xdr.AppendUint32(nil, uint32(n)), 0, 0, 0, 1)
			p = append(p, make([]byte, 16)...)
			tx.Reply.Payload = append(p, result...)
			tx.Reply.PayloadLength = len(tx.Reply.Payload)
			tx.Reply.First = rdma.Ref{Time: now + int64(flags&16), Number: 2*n + 1}
			tx.Reply.Last = tx.Reply.First
		}
		view.Set(tx)
		if err := b.Add(&view); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	l := load(t, out)
	l.counts(t)
	l.defined(t)
	if thorough {
		l.identity(t)
	}
	l.arguments(t)
}
