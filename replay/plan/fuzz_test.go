package plan

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// FuzzReader reads anything as a plan. What is accepted can be written, and
// read again as the same.
func FuzzReader(f *testing.F) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap"} {
		b := readFile(f, build(f, filepath.Join(samples, name), Options{}))
		f.Add(b)
		// Its ops alone are short enough to be changed with effect.
		lines := bytes.SplitAfter(b, []byte("\n"))
		var few []byte
		for _, l := range lines {
			if !bytes.HasPrefix(l, []byte(`{"op"`)) && !bytes.HasPrefix(l, []byte(`{"skip"`)) {
				few = append(few, l...)
			}
		}
		f.Add(few)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		defer r.Close()
		var out bytes.Buffer
		w := NewWriter(&out)
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
				o.each(func(f *Field) { big = big || f.Data != nil && f.Data.Length > 1<<20 })
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
		again, err := NewReader(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if _, err := again.All(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzBuilder makes calls and replies of anything. The plan of them can be
// read, and keeps the rules.
//
// The input is a list of transactions: version, procedure, flags, connection,
// lengths of arguments and results, arguments, results.
func FuzzBuilder(f *testing.F) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap"} {
		l := load(f, build(f, filepath.Join(samples, name), Options{}))
		res := &asCaptured{l: l}
		var b []byte
		for _, o := range l.ops {
			args, items, err := o.AppendArgs(nil, nil, res)
			if err != nil || len(items) > 0 || o.Expect == nil {
				continue
			}
			b = append(b, byte(o.Version), byte(o.Procedure), 0, byte(o.Connection))
			b = binary.BigEndian.AppendUint16(b, uint16(len(args)))
			b = binary.BigEndian.AppendUint16(b, uint16(len(o.Expect.Results)))
			b = append(append(b, args...), o.Expect.Results...)
		}
		f.Add(b)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, in []byte) {
		out := filepath.Join(dir, "fuzz.plan")
		b, err := NewBuilder(out, Options{Objects: 1000})
		if err != nil {
			t.Fatal(err)
		}
		conns := [4]*rdma.Connection{}
		for i := range conns {
			conns[i] = &rdma.Connection{ID: i + 1, Fabric: rdma.RoCEv2, Ends: [2]rdma.End{
				{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + i/2)}), QPN: 17},
				{Addr: netip.AddrFrom4([4]byte{192, 0, 2, 1}), QPN: 17},
			}}
		}
		var view rpc.View
		now := int64(1e18)
		for n := uint64(1); len(in) >= 8 && n < 200; n++ {
			version, procedure, flags, conn := uint32(in[0]), uint32(in[1]), in[2], in[3]
			na, nr := int(binary.BigEndian.Uint16(in[4:])), int(binary.BigEndian.Uint16(in[6:]))
			in = in[8:]
			na = min(na, len(in))
			args := in[:na]
			in = in[na:]
			nr = min(nr, len(in))
			result := in[:nr]
			in = in[nr:]
			c := oncrpc.Call{XID: uint32(n), RPCVersion: 2, Program: nfs4.NFS4_PROGRAM, Version: version, Procedure: procedure}
			tx := &transaction.Transaction{
				Connection: conns[conn%4], XID: uint32(n), Program: nfs4.NFS4_PROGRAM, Version: version, Procedure: procedure, Named: true,
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
		l.identity(t)
		l.arguments(t)
		_ = os.Remove(out)
	})
}
